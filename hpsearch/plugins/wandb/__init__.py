"""Weights & Biases.

- `tracker`: sends a run for each trial
- `sweep`: a sweep's file; `translate`: that as a study file
- `options`: its keys in a study file
- `programs`, `sweep_line`: scripts of sweeps as commands (the entry point `trials.programs`)
- `hook`: the `wandb` that such a script finds
"""

from hpsearch.domain.plugins.offers import SourcePlugin, TrackerPlugin

offers = [
    TrackerPlugin(
        "wandb",
        options="hpsearch.plugins.wandb.options:WandbOptions",
        tracker="hpsearch.plugins.wandb.tracker:WandbTracker",
        packages=("wandb",),
    ),
    SourcePlugin(
        "wandb",
        what="the YAML file of a W&B sweep",
        takes="hpsearch.plugins.wandb.translate:is_sweep",
        draft="hpsearch.plugins.wandb.translate:draft_in",
    ),
]
