"""The run of a study: its parts, chosen by its study file and joined.

- `on_ray`: the whole run, on a Ray cluster
- `brain`: the brain over a study's history
- `workers`: the configuration of the workers
- `ownership`: leases, for as long as somebody drives or changes a study
- `signals`: Ctrl-C and SIGTERM
- `requests`: requests to a study that runs elsewhere
"""
