"""What people look at, without knowing of commands: tables, plans and live progress.

* `tables`: studies and trials; `status`: the status of a study and the history of a trial.
* `planned`: what a study would do, and what it would take.
* `running`: a study while it runs; `answer`: what it found; `gain`: what it gained, in a sentence.
* `asked`: what was asked of a study while it ran; decisions in words.
* `comparison`: trials side by side; `curve`: a learning curve.
* `trust`: how far its rungs can be trusted.
* `numbers`, `terminal`: numbers and texts as they are printed.
"""
