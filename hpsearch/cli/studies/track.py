"""`hpsearch track`: send a study that has ended to experiment trackers.

For those who set a tracker up after the study, or whose tracker was out of reach while it ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import yaml
from pydantic import TypeAdapter, ValidationError

from hpsearch.cli.output import log_as_notes, note
from hpsearch.errors import Interrupted, Unreachable, UserError
from hpsearch.store.store import Store
from hpsearch.study_file.text.messages import problems_of
from hpsearch.study_file.trackers import TRACKERS, NamedTracker, TrackerList
from hpsearch.tracking.packages import refuse_missing
from hpsearch.tracking.processes import Senders
from hpsearch.wiring.creation import spec_of
from hpsearch.wiring.ownership import refuse_if_held

_TRACKERS: TypeAdapter[tuple[NamedTracker, ...]] = TypeAdapter(TrackerList)


def track_study(name: str, to: Sequence[str], storage: str, *, again: bool) -> None:
    """Send all of a study that trackers have not been told yet.

    Args:
        name: The study.
        to: Trackers as a study file writes them; none for those of the study file.
        storage: The database's URL.
        again: Whether to send what they were told before, too.

    Raises:
        UserError: No tracker is named, or one is wrong or not installed.
        StudyHeld: A driver owns the study.
        StudyNotFound: There is no such study.
        Unreachable: Not everything could be sent.
        Interrupted: By Ctrl-C.
    """
    with closing(Store.open(storage, create=False)) as store:
        record = store.find_study(name)
        refuse_if_held(store, name)
        if not record.spec:
            raise UserError(f"study {name} was made through Optuna and has no study file")
        trackers = _named(to) if to else spec_of(record).track
        if not trackers:
            what = f"the study file of {name} names no tracker"
            raise UserError(what, f"name one: hpsearch track {name} --to {TRACKERS[0]}")
        refuse_missing(trackers)
        if not record.checkpoints:
            raise UserError(f"study {name} has no folder of its own", f"hpsearch resume {name}")
        log_as_notes()
        senders = Senders(store, name, record.checkpoints, trackers, None, again=again)
        try:
            senders.begin()
            sent = senders.end()
        except KeyboardInterrupt:
            what = f"interrupted; what was sent stays. Continue with: hpsearch track {name}"
            raise Interrupted(what) from None
    for place in sent:
        note(f"study {name} is in {place}")
    if len(sent) < len(trackers):
        raise Unreachable(f"not all of study {name} was sent", f"try again: hpsearch track {name}")


def _named(to: Sequence[str]) -> tuple[NamedTracker, ...]:
    """The trackers of ``--to``.

    Raises:
        UserError: One is not a tracker.
    """
    try:
        return _TRACKERS.validate_python([yaml.safe_load(text) for text in to])
    except yaml.YAMLError as error:
        what = f"--to: cannot be read: {' '.join(str(error).split())[:200]}"
        hint = "write it as in a study file, such as {wandb: {project: demo}}"
        raise UserError(what, hint) from None
    except ValidationError as error:
        problem = problems_of(error, NamedTracker, "--to")[0]
        raise UserError(f"{problem.where}: {problem.what}") from None
