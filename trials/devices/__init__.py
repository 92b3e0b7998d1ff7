"""The devices and processes that a trial runs on.

- `gpu`: the name of a GPU, and why torch cannot use it.
- `graphs`: work that is captured once and replayed (CUDA graphs).
- `memory`: a device's memory: a process's share of it, what is in use, and errors that say it has
run out.
- `precision`: mixed precision and loss scaling.
- `processes`: one trial on several processes, each with a device of its own.
- `ranks`: such processes in a study: their places, what rank 0 tells them, and their group.
"""
