"""Checkpoints: written whole or not at all, in a folder or an object store.

- `checkpoints`: the checkpoints of one trial, its newest and its best.
- `continuing`: the checkpoint that a run continues from.
- `manifests`: what a checkpoint says of itself; comparing its files with that; names of runs.
- `trimming`: what a waiting trial, an ended one and one that has moved keep, and its size.
- `folders`: folders of checkpoints by a path or a URL. `checkpoint_folder` says what such a folder
  can do; `disk_folder` and `store_folder` are the two kinds.
- `disk`: folders and files of this machine that are written whole or not at all; logs.
- `weights`: tensors copied to host memory, and written.
"""
