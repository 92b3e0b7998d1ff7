"""A command of the user's own, in a process of its own: it prints its reports.

- `task`: the task
- `run`: one attempt: its reports, its checkpoints, and how it ends
- `program`: the program's processes: started, suspended, told to end and killed
- `keeper`: the process between the worker and the program
- `report_lines`: lines of what a program prints or writes
- `readers`: reports in these lines: JSON, patterns, CSV
- `attempt_folder`: the folder that a program writes into, and what is sealed of it
- `output`: where all other output goes
"""
