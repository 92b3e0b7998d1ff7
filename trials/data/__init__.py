"""Data on its way to the model.

- `workload`: the protocol between the training loop and a built-in task.
- `files`: what a data file must be before it is read.
- `cache`: prepared data on the disk.
- `batching`: which samples make a batch, and how a batch is padded.
- `ladder`: the few lengths that batches are padded to where steps are captured.
- `order`: which samples the next step of a run trains.
- `residence`: whether samples are on the device.
- `samples`: samples as flat tensors, and batches of them.
"""
