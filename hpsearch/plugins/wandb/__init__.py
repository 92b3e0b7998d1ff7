"""Weights & Biases.

- `tracker`: sends a run for each trial
"""

from pathlib import Path
from typing import Literal

from hpsearch.domain.plugins.news import Tracker
from hpsearch.domain.plugins.offers import TrackerPlugin
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


def _open(options: WandbOptions, base: Path) -> Tracker:
    from hpsearch.plugins.wandb.tracker import WandbTracker

    return WandbTracker(options, base)


offers = [TrackerPlugin("wandb", WandbOptions, _open, ("wandb",))]
