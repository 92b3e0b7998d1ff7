"""A built-in task from its settings to a trained model: the parts that all kinds share.

- `trained_task`: the task, which prepares its data and starts runs of the loop
- `workload`: a model with its samples: batches, losses, evaluation, files of a checkpoint
- `heads`: losses and metrics of classes, labels and quantities
- `in_use`: a trained model in use
"""
