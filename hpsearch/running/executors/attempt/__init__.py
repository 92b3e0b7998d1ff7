"""One attempt on a worker.

- `execution`: trains it, under the orders of the worker's driver
- `thinning`: the reports of it that are recorded, where it makes very many
- `attempt_log`: its output, as its log
"""
