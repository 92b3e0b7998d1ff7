"""The one training loop.

- `training`: the loop itself.
- `position`: the progress of a run.
- `saves`: the checkpoints of a run, in the foreground or in the background.
- `stopping`: the best report, and early stopping.
- `horizon`: the budget of a run, its levels and its learning rate.
- `micro_batch`: the samples that go through the model at once.
- `compiling`: the loss through `torch.compile`, or without it if that fails.
"""
