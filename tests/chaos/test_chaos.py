"""Short, fixed rounds of `benchmarks/chaos.py`: one strike, and every kind on both databases."""

import json
import os
import sys
from pathlib import Path

import pytest

from support.running.programs import run_program

CHAOS = Path(__file__).parents[2] / "benchmarks" / "chaos.py"
SPARED = {"disk of checkpoints full", "disk of the database full"}
"""Kinds that need the right to mount a disk."""


def kinds() -> dict[str, set[str]]:
    """Every kind, by the storage it belongs to."""
    both = {"driver killed", "worker killed", "node killed", "driver stopped", "worker stopped"}
    both |= {"head killed", "worker told to end", "node told to end"}
    both |= {"disk of checkpoints full", "checkpoint corrupted", "checkpoint deleted"}
    return {
        "sqlite": both | {"database locked", "disk of the database full"},
        "postgresql": both | {"server killed", "connection dropped", "connection delayed"},
    }


def has_postgresql() -> bool:
    if any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return True
    assert os.environ.get("HPSEARCH_TESTS_REQUIRE_POSTGRESQL") != "1", (
        "PostgreSQL's server is not installed"
    )
    return False


def strike(folder: Path, storage: str, kills: int, *more: str) -> dict[str, dict[str, int]]:
    """What `benchmarks/chaos.py` told of each kind of trouble after so many strikes."""
    told = folder / "told.json"
    command = [sys.executable, str(CHAOS), "--kills", str(kills), "--seed", "7", "--quick"]
    ended = run_program(
        [*command, "--storage", storage, "--json", str(told), *more],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    return {row["kind"]: row for row in json.loads(told.read_text())["rows"]}


@pytest.mark.thorough
def test_a_study_survives_the_death_of_a_worker(tmp_path):
    rows = strike(tmp_path, "sqlite", 1, "--kind=worker killed", "--patience=20")
    assert rows["worker killed"]["strikes"] == 1
    assert rows["worker killed"]["problems"] == 0
    assert rows["the studies' ends"]["problems"] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("storage", ["sqlite", "postgresql"])
def test_a_study_survives_every_kind_of_trouble(storage, tmp_path):
    if storage == "postgresql" and not has_postgresql():
        pytest.skip("PostgreSQL's server is not installed: there is no initdb")
    expected = kinds()[storage]
    rows = strike(tmp_path, storage, len(expected), "--patience=3")
    missing = expected - rows.keys()
    assert missing <= SPARED, f"left out: {missing}"
    for kind in expected - missing:
        assert rows[kind]["strikes"] >= 1, kind
        assert rows[kind]["problems"] == 0, kind
    assert rows["the studies' ends"]["problems"] == 0
