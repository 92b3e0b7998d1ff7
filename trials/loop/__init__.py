"""The one training loop.

- `training`: the loop itself.
- `horizon`: how far along its budget a run is, and the learning rate it has there.
- `micro_batch`: how many samples go through the model at once.
- `memory_facts`: what processes learn about the micro-batches that fit.
"""
