"""Prometheus, which reads the metrics of a study from inside its driver.

- `metrics`: the metrics, and their server
"""

from hpsearch.domain.plugins.offers import WatchPlugin

offers = [
    WatchPlugin(
        "metrics",
        metavar="[HOST:]PORT",
        help="Where a Prometheus reads the metrics of the study. Port 0 takes a free one.",
        watch="hpsearch.plugins.prometheus.metrics:serving",
    )
]
