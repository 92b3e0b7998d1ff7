"""Questions to the database.

- `queries`: studies, trials and the best of them; `frames`: the same for pandas
- `provenance`: the environment that a trial was trained in
- `filters`: `--where` and `--sort`, as a tree; `conditions`: the tree as SQL; `names`: the names
  that it may hold
- `goals`: the objectives of a study
- `standing`: studies as `ls` and `status` show them; `history_frames`: all of a study for its
  report; `trust`: how far its rungs can be trusted
- `logs`: the files with the output of attempts
"""
