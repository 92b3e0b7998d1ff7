"""The user's own training code: a function that reports.

- `function_task`: the task, which finds its function
- `run`: one call of the function, in a thread of its own
- `own`: the modules of the user, found and loaded
- `trial`: the trial as the function sees it
- `report_history`: the reports of a trial: health checks and the best checkpoint
"""
