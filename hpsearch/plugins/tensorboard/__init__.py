"""TensorBoard.

- `tracker`: writes event files, in a folder for each trial
"""

from pathlib import Path

from hpsearch.domain.plugins.news import Tracker
from hpsearch.domain.plugins.offers import TrackerPlugin
from hpsearch.study_file.types import Text
from hpsearch.study_file.validation import Model


class TensorboardOptions(Model):
    """TensorBoard: event files, in a folder for each trial."""

    folder: Text = "runs"
    """The folder that the study gets a folder of its own in."""


def _open(options: TensorboardOptions, base: Path) -> Tracker:
    from hpsearch.plugins.tensorboard.tracker import TensorboardTracker

    return TensorboardTracker(base / options.folder)


offers = [TrackerPlugin("tensorboard", TensorboardOptions, _open, ("tensorboard",))]
