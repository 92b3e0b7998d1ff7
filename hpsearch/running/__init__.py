"""Studies while they run.

`study_run`            the run of a study: parts chosen and joined, leases, signals, requests
`creation`             a new study into the database; what it runs on, what earlier ones tell it
`driver`               the loop: poll, decide, commit, execute; the thread that removes checkpoints
`executors`            slots on a Ray cluster, one worker, its processes
`tracking`             a thread for each experiment tracker, and what it was sent
`rehearsal`            a study tried out before it is paid for: its first step, its first reports
`reproduction`         a training of a trial's configuration, compared with its record
`loading`              the task that a study file states, adapted where it names a library
`checkpoint_folders`   the folder of checkpoints of a study, and the mark in it
"""
