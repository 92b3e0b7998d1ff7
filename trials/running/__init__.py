"""Running one attempt of a trial, in a study or without one.

- `runner`: advances a run to a level, saves it, closes it, and says how it failed.
- `report_grid`: a trial's budget, and the levels at which it reports.
- `rounds`: a trial that trains on fold after fold, or with seed after seed.
- `arithmetic`: what the sums of a training depend on besides its settings, seed and data.
- `randomness`: seeds that derive from the trial's seed and a place.
- `reported`: what a report may be: names, numbers, and the time trained.
- `interruption`: signals that ask the process to stop.
- `watcher`: the process that watches a worker or a program; how what they leave is ended.
- `exit_codes`: the end of a process in words.
- `surroundings`: temporary folder, home and name of the user, where the machine gives none.
"""
