"""Several processes for one trial: rank 0 is the worker of the slot, the others follow it.

- `follower`: the actor of a rank above 0
- `followers`: these actors, seen from rank 0
"""
