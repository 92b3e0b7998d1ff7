"""Weights & Biases.

- `tracker`: sends a run for each trial
- `options`: its keys in a study file
"""

from hpsearch.domain.plugins.offers import TrackerPlugin

offers = [
    TrackerPlugin(
        "wandb",
        options="hpsearch.plugins.wandb.options:WandbOptions",
        tracker="hpsearch.plugins.wandb.tracker:WandbTracker",
        packages=("wandb",),
    )
]
