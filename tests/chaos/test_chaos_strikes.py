"""What a strike on checkpoints may take: only what its trial has to continue from."""

import importlib
import itertools
import math
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from support.patience import PATIENCE_S

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def strikes(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    kinds = importlib.import_module("strikes.kinds")
    looks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(looks), sleep=lambda seconds: None)
    monkeypatch.setattr(kinds, "time", clock)
    monkeypatch.setattr(kinds, "OPPORTUNITY_S", 2.0)  # by a clock that moves on at each look
    return kinds


class Striking:
    """A trial on the disk, processes that stand for its worker and its driver, and a record that
    names step 300."""

    def __init__(self, folder: Path) -> None:
        idle = [sys.executable, "-c", "import time; time.sleep(600)"]
        self.folder = folder
        self.worker, self.driver = subprocess.Popen(idle), subprocess.Popen(idle)
        self.nodes = SimpleNamespace(workers=lambda: [psutil.Process(self.worker.pid)])
        self.asked = 0

    def rows(self, query: str, which: str) -> list[tuple[str, int]]:
        self.asked += 1
        return [(str(self.folder / "step-300"), 2)]

    def saves(self, step: int) -> Path:
        path = self.folder / f"step-{step}"
        path.mkdir()
        (path / "state.pt").write_bytes(b"a state")
        (self.folder / "last").unlink(missing_ok=True)
        (self.folder / "last").symlink_to(path.name)
        return path


@pytest.fixture
def striking(tmp_path: Path) -> Iterator[Striking]:
    struck = Striking(tmp_path)
    yield struck
    for process in (struck.worker, struck.driver):
        process.kill()
        process.wait()


@pytest.mark.parametrize("kind", ["checkpoint deleted", "checkpoint corrupted"])
def test_a_checkpoint_is_spared_while_a_report_with_a_newer_one_may_be_on_its_way(
    strikes, striking, kind
):
    on_record = striking.saves(300)
    striking.saves(450)
    strikes.KINDS[kind](striking, striking, random.Random(0))
    assert (on_record / "state.pt").read_bytes() == b"a state"
    assert striking.asked > 1, "it looks again for one that it may take"
    assert striking.worker.wait(timeout=PATIENCE_S) == -signal.SIGKILL


@pytest.mark.parametrize("kind", ["checkpoint deleted", "checkpoint corrupted"])
def test_the_newest_checkpoint_on_record_is_taken_and_the_driver_goes_on(strikes, striking, kind):
    striking.saves(150)
    on_record = striking.saves(300)
    strikes.KINDS[kind](striking, striking, random.Random(0))
    assert not on_record.exists() or (on_record / "state.pt").read_bytes() != b"a state"
    assert striking.worker.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    assert psutil.Process(striking.driver.pid).status() != psutil.STATUS_STOPPED


def test_a_strike_on_a_study_that_has_ended_takes_nothing_and_does_not_wait(strikes, striking):
    on_record = striking.saves(300)
    striking.saves(450)
    striking.driver.kill()
    strikes.OPPORTUNITY_S = math.inf
    strikes.checkpoint_deleted(striking, striking, random.Random(0))
    assert on_record.exists()
