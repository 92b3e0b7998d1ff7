"""The keys of `track: {wandb: ...}` in a study file."""

from typing import Literal

from hpsearch.study_file.types import Text
from hpsearch.study_file.validation import Model


class WandbOptions(Model):
    """Weights & Biases: a run for each trial, in a group for the study."""

    project: Text = "hpsearch"
    """The project."""
    entity: Text | None = None
    """The team or user; without it as WANDB_ENTITY says."""
    mode: Literal["online", "offline"] | None = None
    """Online sends runs, offline writes them; without it as WANDB_MODE says, else online."""
    folder: Text | None = None
    """The folder for wandb's files; without it `wandb` beside the study file."""
