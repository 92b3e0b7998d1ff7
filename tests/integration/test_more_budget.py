"""A study that has ended goes on with more budget, and keeps the checkpoints it needs and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_run_and_resume import Workplace


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path / "work")


def test_a_study_that_has_ended_goes_on_with_a_larger_budget(workplace: Workplace) -> None:
    workplace.call("run", "study.yaml")
    assert "all 14 trials have ended" in workplace.call("resume", "toy")
    before = workplace.rows("SELECT number, params FROM trials ORDER BY number")
    said = workplace.call("resume", "toy", "--trials", "20", "--wall-clock", "1h")
    assert "all 20 trials have ended" in said
    after = workplace.rows("SELECT number, params FROM trials ORDER BY number")
    assert len(after) == 20
    assert after[:14] == before
    assert workplace.rows("SELECT spec LIKE '%trials: 20%', spec LIKE '%wall_clock: 1h%' FROM studies") == [(1, 1)]
    assert "20 trials of 20" in workplace.call("status", "toy")
    assert "must be above 0" in workplace.call("resume", "toy", "--trials", "0", code=2)
    assert "has begun 20 trials already" in workplace.call("resume", "toy", "--trials", "3", code=2)


def test_status_tells_what_the_checkpoints_take_and_only_those_that_are_kept_are_there(workplace: Workplace) -> None:
    workplace.write(
        search={"pruner": "none"},
        budget={"trials": 14, "per_trial": {"epochs": 2}},
        settings={"pause": 0.0, "fragile": True},
    )
    workplace.call("run", "study.yaml")
    kept = workplace.rows("SELECT number FROM trials WHERE checkpoint IS NOT NULL ORDER BY number")
    folders = sorted((workplace.folder / "hpsearch-studies" / "toy").glob("trial-*"))
    assert [path.name for path in folders] == [f"trial-{number:05d}" for (number,) in kept]
    assert len(kept) == 10
    told = json.loads(workplace.call("status", "toy", "--format", "json"))
    files = [path for path in (workplace.folder / "hpsearch-studies").rglob("*") if path.is_file()]
    assert told["checkpoint_bytes"] == sum(path.stat().st_size for path in files if not path.is_symlink()) > 0
