"""Executors: what runs attempts on slots. Each one passes the same contract suite.

- `ray`: slots on a Ray cluster; `ray_slot`: one of them
- `slot_needs`: what a slot takes, and the wait for it
- `ray_cluster`: being part of a Ray cluster, and what its head says about the nodes
- `autoscaler`: whether a cluster has one, and what it could bring
- `address`: whether anything answers at a cluster's address
- `worker`: trains one attempt after another in a process; knows no cluster
- `worker_process`: that process: its children end with it, and a notice to end reaches it
- `first_report`: one attempt up to its first report, for a check
- `attempt`: one attempt on a worker
- `worker_config`: what is the same for all attempts of a study
"""
