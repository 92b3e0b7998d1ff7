"""One attempt on a worker.

- `execution`: trains it
- `control`: the orders about it
- `worker_state`: what stays in the process for the next one
- `thinning`: which of its reports are recorded, where it makes very many
- `printing`: where what it prints goes
- `log_lines`: its beginning and end in that log
"""
