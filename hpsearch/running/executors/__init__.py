"""Executors, which run attempts on slots. Each one passes the same contract suite.

- `ray`: slots on a Ray cluster; `ray_slot`: one of them, and its placement group
- `ranks`: several processes for one trial
- `slot_needs`: the resources of a slot, and the wait for them
- `awaited`: the same on a thread that waits for Ray while the main one hears signals
- `cluster`: being part of a Ray cluster
- `worker`: trains one attempt after another in a process; knows no cluster
- `worker_process`: that process: its children end with it, and a notice to end reaches it
- `first_report`: one attempt up to its first report, for a check
- `attempt`: one attempt on a worker
- `worker_config`: the facts that all attempts of a study share, and what stays between them
"""

import os

# Ray reads this once, when it is imported. It would end a process that has not reached the head for
# a minute; here `cluster.ray_cluster.HeadNode` decides how long is too long.
os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", str(24 * 3600))
