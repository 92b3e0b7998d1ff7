"""The one training loop.

- `training`: the loop itself; read this first.
- `position`: the progress of a run.
- `saves`: the checkpoints of a run, in the foreground or in the background.
- `stopping`: the best report, and early stopping.
- `on_ranks`: a run on one of several ranks, which does what rank 0 says.
- `horizon`: the budget of a run, its levels and its learning rate.
- `micro_batch`: the samples that go through the model at once.
- `optim`: from gradients to weights.
- `telemetry`: measurements of a run by itself.
- `captured`: forward and backward passes as CUDA graphs, which the next trial replays too.

One step: `data.samples` makes a batch, `training` adds up the losses of its micro-batches, and
`optim.updates` clips and applies the gradients. `running.runner` asks the loop for reports and
saves; `checkpoints.continuing` finds the checkpoint that a run continues from.
"""
