"""TensorBoard.

- `tracker`: writes event files, in a folder for each trial
- `options`: its keys in a study file
- `event_files`: reports in such files (the entry point `trials.reports`)
"""

from hpsearch.domain.plugins.offers import TrackerPlugin

offers = [
    TrackerPlugin(
        "tensorboard",
        options="hpsearch.plugins.tensorboard.options:TensorboardOptions",
        tracker="hpsearch.plugins.tensorboard.tracker:TensorboardTracker",
        packages=("tensorboard",),
    )
]
