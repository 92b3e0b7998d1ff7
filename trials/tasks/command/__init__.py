"""A command of the user's own, in a process of its own: it prints its reports.

- `task`, `command`: the task, and what its part states
- `run`: one attempt: its reports, when it saves, and how it ends
- `program`: the program's processes: started, suspended, told to end and killed
- `keeper`: the process between the worker and the program
- `report_stream`: its reports as they come, in `report_lines` of what it prints or writes
- `readers`: reports in these lines: JSON, patterns, CSV
- `attempt_folder`: the folder that a program writes into
- `seals`: the checkpoints that are made of this folder
- `output`: where all other output goes
"""
