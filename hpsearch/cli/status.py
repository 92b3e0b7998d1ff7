"""`hpsearch status`: where one study stands."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from hpsearch.cli.ls import as_plain
from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import Format, emit_csv, emit_json, emit_yaml, room, show
from hpsearch.store.standing import StudyStatus, study_status
from hpsearch.views import status as view
from trials import places


def status(name: str | None, storage: str, format_: Format) -> None:
    """Print trials by state, the best so far, the budget, what is running and what failed."""
    now = time.time()
    with reading(storage) as connection:
        found = study_status(connection, chosen_study(connection, name), now)
    disk = used(found.summary.head.checkpoints)
    if format_ is Format.TABLE:
        show(*view.status(found, now, room(), disk))
    elif format_ is Format.CSV:
        emit_csv([{k: v for k, v in _as_plain(found, disk).items() if k not in ("running", "failures")}])
    elif format_ is Format.YAML:
        emit_yaml(_as_plain(found, disk))
    else:
        emit_json(_as_plain(found, disk))


def used(folder: str | None) -> int | None:
    """What a folder of checkpoints takes, in bytes; None where it cannot be seen from here."""
    if folder is None:
        return None
    try:
        return places.used_bytes(folder)
    except (places.PlaceError, OSError):
        return None


def _as_plain(of: StudyStatus, disk: int | None) -> dict[str, Any]:
    return {
        **as_plain(of.summary),
        "stop_requested": of.summary.head.stop_requested,
        "budget": {limit.name: {"used": limit.used, "limit": limit.most} for limit in of.budget},
        "reserved_gpu_seconds": of.reserved_gpu_seconds,
        "checkpoints": of.summary.head.checkpoints,
        "checkpoint_bytes": disk,
        "trials_per_hour": of.trials_per_hour,
        "running": [asdict(each) for each in of.running],
        "failures": [asdict(each) for each in of.failures],
    }
