"""What checkpoints will take, and what is said before a study starts whose disk has no room for
that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpsearch.brain.retention import BEST, WAITING
from hpsearch.study_file.models import StudySpec
from hpsearch.views.forecast.footprint import CheckpointSize, peak_bytes, warnings
from support.studies.small import spec_with
from unit.brain.test_retention import GIGABYTE

ONE = CheckpointSize(whole_bytes=3 * GIGABYTE, weights_bytes=GIGABYTE)


def study(trials: int = 1000, **changes: Any) -> StudySpec:
    return spec_with(budget={"trials": trials, "per_trial": {"epochs": 9}}, **changes)


def gigabytes(spec: StudySpec, workers: int = 2) -> float:
    return peak_bytes(spec, ONE, workers) / GIGABYTE


def test_trials_that_run_wait_and_ended_add_up() -> None:
    running = 2 * ((2 + 2) * 3 + 1)
    assert gigabytes(study()) == running + WAITING * (3 + 1) + BEST * 1
    assert gigabytes(study(trials=5)) == running + 5 * (3 + 1)
    assert gigabytes(study(search={"pruner": "none"})) == running + BEST * 1
    assert gigabytes(study(settings={"keep_checkpoints": 1})) == gigabytes(study()) - 2 * 3
    confirm = {"confirm": {"top": BEST + 5, "seeds": 1}}
    assert gigabytes(study(search=confirm)) == gigabytes(study()) + 5


def test_a_limit_holds_but_for_what_runs() -> None:
    assert gigabytes(study(checkpoints={"max_gb": 50})) == 50
    assert gigabytes(study(checkpoints={"max_gb": 5})) == 26


def test_a_disk_without_room_is_told_with_what_to_do(tmp_path: Path) -> None:
    huge = CheckpointSize(whole_bytes=1e18, weights_bytes=3e17)
    (told,) = warnings(study(), huge, 1, str(tmp_path / "not" / "there" / "yet"))
    assert "checkpoints may take 137300000000 GB" in told
    advice = (
        "GB left: choose another folder with --checkpoints, "
        "or a limit with checkpoints: {max_gb: ...}"
    )
    assert advice in told
    assert list(warnings(study(), CheckpointSize(3.0, 1.0), 1, str(tmp_path))) == []
    assert list(warnings(study(), huge, 1, "memory://somewhere")) == []


def test_a_limit_that_running_trials_exceed_is_told(tmp_path: Path) -> None:
    small = CheckpointSize(whole_bytes=300.0, weights_bytes=100.0)
    (told,) = warnings(study(checkpoints={"max_gb": 1e-7}), small, 4, str(tmp_path))
    assert told.startswith(
        "checkpoints.max_gb: 1e-07 GB is less than the 5.2e-06 GB that running trials take"
    )
