"""The trackers, a module for each: `to_mlflow`, `to_wandb`, `to_tensorboard`, `to_trackio`.

Each is the one place that imports its library, and is itself imported only by a sender.
"""
