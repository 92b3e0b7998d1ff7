"""The user's own training code: a function that reports.

- `task`: the task, and how its function is found
- `run`: one call of the function, in a thread of its own
- `trial`: the trial as the function sees it
- `reported`: what may be reported
- `report_history`: the reports of a trial: health checks and the best checkpoint
- `stopwatch`: the time that a trial trains
"""
