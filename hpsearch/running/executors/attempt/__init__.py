"""One attempt on a worker.

- `execution`: trains it
- `control`: the orders about it
- `worker_state`: the state of the process for the next one
- `thinning`: the reports of it that are recorded, where it makes very many
- `printing`: its output, as its log
- `log_lines`: its beginning and end in that log
"""
