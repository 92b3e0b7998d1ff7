"""The keys of `track: {trackio: ...}` in a study file."""

from hpsearch.study_file.types import Text
from hpsearch.study_file.validation import Model


class TrackioOptions(Model):
    """Trackio: a run for each trial, in a group for the study."""

    project: Text = "hpsearch"
    """The project."""
    space: Text | None = None
    """The Space of Hugging Face that runs are sent to; without it as TRACKIO_SPACE_ID says, else
    they stay on this machine."""
