"""The user's own training code: a function that reports.

- `function_task`: the task, which finds its function
- `own`: the modules of the user, found and loaded
- `run`: one call of the function, seen from its worker
- `process`: the process that it runs in, seen from there
- `child`: that process
- `process_state`: its state, put back after each trial
- `python_state`, `library_state`: the parts of that state
- `messages`: what both say
- `trial`: the trial as the function sees it
- `report_history`: the reports of a trial: health checks and the best checkpoint
"""
