"""A built-in task from its settings to a trained model: the parts that all kinds share.

- `task`: the task: its data is prepared, a run of the loop is started
- `workload`: a model with its samples: batches, losses, evaluation
- `heads`, `metrics`: classes, labels and quantities: their losses and their metrics
- `evaluation`: validation batches that fit the device's memory
- `network_files`: a model in the folder of a checkpoint
- `finishing`: the steps of a final training
"""
