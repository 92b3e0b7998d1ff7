"""A command: a program in a process of its own, which prints its reports.

- `command_task`, `run`: the task, and one attempt of it
- `program`: the program's processes
- `starting`: why a program is not started, and the Python that runs it
- `report_stream`: reports in lines, and in the output or a file as they come
- `attempt_folder`: the folder that a program writes into, and the checkpoints of it
- `measuring`: what measures a trained folder; `checkout`: changed code, kept off that
- `output`: the log of all other output; the line in it that says why it ended
"""
