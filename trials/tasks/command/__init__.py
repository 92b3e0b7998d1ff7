"""A command of the user's own, in a process of its own: it prints its reports.

- `task`: the task, and what its part states
- `run`: one attempt: its reports, when it saves, and how it ends
- `program`: the program's processes: started, suspended, told to end and killed
- `keeper`: the process between the worker and the program
- `readers`: reports in lines: JSON, patterns, CSV
- `report_stream`: reports as they come, in what a program prints or in a file that it writes
- `attempt_folder`: the folder that a program writes into, and the checkpoints of it
- `output`: the log of all other output
"""
