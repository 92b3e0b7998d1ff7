"""What tests of the benchmarks share: their modules, and a table that is searched in no time."""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
POINTS = 9
NAMES = ["learning_rate", "beta1"]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the benchmarks by its name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a table of 100 settings, of which the fourth diverges at its third point, and a
    list of tasks."""
    _write_table(tmp_path, "small", 100)
    (tmp_path / "tasks.json").write_text(json.dumps({"tasks": []}))
    return tmp_path


@pytest.fixture
def several(bench: Any, data: Path) -> Any:
    """Tables of 60, 100 and 20 settings, as tasks."""
    _write_table(data, "middle", 60)
    _write_table(data, "tiny", 20)
    return bench("races.curves").tasks_in(data / "tasks.json", data, "taskset")


def _write_table(folder: Path, name: str, size: int) -> None:
    """A table of random settings whose losses fall; the best learning rate is 0.01."""
    draw = np.random.default_rng(0)
    rates = 10 ** draw.uniform(-4, 0, size)
    settings = np.stack([rates, 1 - 10 ** draw.uniform(-3, 0, size)], axis=1)
    final = 0.2 + 0.1 * (np.log10(settings[:, 0]) + 2) ** 2
    losses = final[:, None] + 0.5 / np.arange(1, POINTS + 1)
    losses[3, 2] = np.nan
    losses[4, 5:] = 1e9
    (folder / "taskset").mkdir(exist_ok=True)
    path = folder / "taskset" / f"{name}.npz"
    np.savez(path, hp_names=NAMES, hp=settings, valid=losses)


@pytest.fixture
def small(bench: Any, data: Path) -> Any:
    """The table as a task."""
    (task,) = bench("races.curves").tasks_in(data / "tasks.json", data, "taskset")
    return task
