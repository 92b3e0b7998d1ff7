"""The one training loop.

- `training`: the loop itself.
- `position`: how far a run has come.
- `saves`: the checkpoints of a run, in the foreground or in the background.
- `stopping`: when a run ends early.
- `horizon`: how far along its budget a run is, and the learning rate it has there.
- `micro_batch`: how many samples go through the model at once.
- `compiling`: the loss through `torch.compile`, and what is done if that fails.
"""
