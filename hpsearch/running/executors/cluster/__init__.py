"""Being part of a Ray cluster.

- `ray_cluster`: joining one or starting one here, leaving it, and the nodes that its head knows
- `ray_thread`: the thread that waits for Ray while the main one hears signals
- `ray_private`: what is used of Ray that is not public
- `callers_folder`: left out of where our processes import from
- `address`: a check of a cluster's address, without Ray
"""
