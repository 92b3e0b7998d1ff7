"""Questions to the database.

- `queries`: studies and trials; `best`: objectives, and the best trials
- `frames`: tables for pandas; `files`: as CSV and Parquet
- `attempts`: where and how trials were trained, their logs, changes of code under test,
  and the time for which slots waited
- `conditions`: `--where` and `--sort` as SQL; `names`: the names that they may hold
- `status`: studies as `ls` and `status` show them; `history_frames`: all of a study for its
  report; `trust`: how far its rungs can be trusted;
  `own_ends`: trials that ended before the budget, or went beyond it;
  `rounds`: how far values vary over folds or seeds
"""
