"""Notices to people: of a new best configuration, of trouble, and of the end of a study.

- `notices`: the events, and their delivery to a URL or a command
"""

from hpsearch.domain.plugins.offers import WatchPlugin

offers = [
    WatchPlugin(
        "notify",
        metavar="URL|COMMAND",
        help="Who is sent a notice of a new best, of trouble and of the end.",
        watch="hpsearch.plugins.notify.notices:watching",
    )
]
