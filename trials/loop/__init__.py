"""The one training loop.

- `training`: the loop itself.
- `position`: how far a run has come.
- `saves`: the checkpoints of a run. `stopping`: when it ends early.
- `horizon`: how far along its budget a run is, and the learning rate it has there.
- `micro_batch`: how many samples go through the model at once.
- `memory_facts`: what processes learn about the micro-batches that fit.
- `compiling`: when compiling a model pays, and what is done if it fails.
"""
