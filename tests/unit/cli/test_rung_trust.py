"""What `status` and `best` say of the rungs of a study."""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.studies.driven import drive
from support.studies.small import Bowl, spec_with

Run = Callable[..., Any]


class Unforeseen(Bowl):
    """Losses whose end has nothing to do with what was before."""

    def measure(self, params: Any, seed: int, resource: float) -> Any:
        draw = np.random.default_rng(int(params["x"] * 2**52) + 1 + int(resource == 9))
        return {"loss": 100 / (1 + resource) + draw.normal()}


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Drives a study once, however many tests look at it; its database."""

    @functools.cache
    def database(curves: type[Bowl], trials: int, **more: Any) -> Path:
        path = tmp_path_factory.mktemp("driven") / "study.db"
        search = {"sampler": "random"}
        budget = {"trials": trials, "per_trial": {"epochs": 9}}
        spec = spec_with(search=search, budget=budget)
        drive(f"sqlite:///{path}", spec, curves(), **more)
        return path

    return database


@pytest.fixture
def study(sqlite_url: str, driven: Callable[..., Path]) -> Callable[..., None]:
    """Puts such a study into the test's own database."""

    def save(curves: type[Bowl], trials: int = 60, **more: Any) -> None:
        shutil.copy(driven(curves, trials, **more), sqlite_url.removeprefix("sqlite:///"))

    return save


def test_status_has_a_line_for_the_weakest_rung(run: Run, study: Callable[..., None]) -> None:
    study(Bowl)
    told = " ".join(run("status").out.split())  # long facts take several lines
    assert re.search(r"rungs weakest at [13] of 9 epochs: the standing predicts the end", told)
    assert "rank correlation 1.00 (" in told


def test_status_of_a_young_study_says_that_nothing_is_known(
    run: Run, study: Callable[..., None]
) -> None:
    study(Bowl, stop_after=5)
    assert "weakest at 1 of 9 epochs: no trial trained to the end" in run("status").out


def test_status_as_json_has_the_numbers(run: Run, study: Callable[..., None]) -> None:
    study(Bowl)
    first, second = json.loads(run("status", "--format", "json").out)["rungs"]
    assert list(first) == [*("level", "reached", "paused", "finished", "correlation", "verdict")]
    assert list(first["correlation"]) == ["value", "low", "high", "trials"]
    assert (first["level"], first["reached"], first["verdict"]) == (1.0, 60, "tells")
    assert second["level"] == 3.0


def test_best_warns_where_the_rungs_told_little(run: Run, study: Callable[..., None]) -> None:
    study(Unforeseen)
    said = run("best")
    told = r"it is not clear how well the rungs predicted the end|told little about the end"
    assert re.search(rf"({told}): rank correlation", said.err)
    assert "a higher first_rung, or pruner: none, trains trials further" in said.err
    (first,) = json.loads(run("best", "--format", "json").out)
    assert first["rung_verdict"] in ("unclear", "little")


def test_best_warns_where_too_few_trials_were_trained_in_full(
    run: Run, study: Callable[..., None]
) -> None:
    study(Bowl, trials=3)
    said = run("best")
    assert "trained once: part of its value may be luck" in said.err
    assert "it is not known whether the rungs can be trusted: only " in said.err
    (first,) = json.loads(run("best", "--format", "json").out)
    assert first["rung_verdict"] == "unknown"


def test_best_says_nothing_of_rungs_that_can_be_trusted(
    run: Run, study: Callable[..., None]
) -> None:
    study(Bowl)
    assert "rungs" not in run("best", "plain").err
    (first,) = json.loads(run("best", "--format", "json").out)
    assert first["rung_verdict"] == "tells"
