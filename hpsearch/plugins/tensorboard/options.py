"""The keys of `track: {tensorboard: ...}` in a study file."""

from hpsearch.study_file.types import Text
from hpsearch.study_file.validation import Model


class TensorboardOptions(Model):
    """TensorBoard: event files, in a folder for each trial."""

    folder: Text = "runs"
    """The folder that the study gets a folder of its own in."""
