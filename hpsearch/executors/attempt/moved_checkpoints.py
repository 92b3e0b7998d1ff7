"""A trial that continues in another folder than before takes its best checkpoint along."""

from __future__ import annotations

import logging
from pathlib import Path

from hpsearch.checkpoint_folders import mark_of
from hpsearch.errors import UserError
from trials.checkpoints import folders
from trials.checkpoints.continuing import carry_best
from trials.contract import Setup

log = logging.getLogger("hpsearch")


def carry_along(setup: Setup) -> None:
    """Copy the best checkpoint of a trial that continues in another folder of its study into that
    folder."""
    source = setup.resume_from
    if source is None:
        return
    folder_before, _ = folders.split(source)
    if str(folder_before) == str(setup.folder) or not _same_study(source, setup.folder):
        return
    try:
        carry_best(source, setup.folder)
    except Exception as error:  # noqa: BLE001 - each store has errors of its own
        log.warning("the best checkpoint so far was not copied from %s: %s", source, error)


def _same_study(source: Path | str, folder: Path | str) -> bool:
    trial_before, _ = folders.split(source)
    study_before, _ = folders.split(trial_before)
    study_now, _ = folders.split(folder)
    try:
        owner = mark_of(str(study_before))
        return owner is not None and owner == mark_of(str(study_now))
    except UserError:  # a mark cannot be read
        return False
