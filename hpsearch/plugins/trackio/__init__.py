"""Trackio.

- `tracker`: sends a run for each trial
- `options`: its keys in a study file
"""

from hpsearch.domain.plugins.offers import TrackerPlugin

offers = [
    TrackerPlugin(
        "trackio",
        options="hpsearch.plugins.trackio.options:TrackioOptions",
        tracker="hpsearch.plugins.trackio.tracker:TrackioTracker",
        packages=("trackio",),
    )
]
