"""Trials in the hands of a worker: driven to a level, paused, and continued by new objects."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from support.running.function_runs import run_in_thread
from trials.contract import Goal, Note, Report, Run, Setup
from trials.running.report_grid import budget_from
from trials.running.runner import Runner

Train = Callable[[Any, Any], None]


class OfFunction:
    """A task whose runs call a function of the test."""

    def __init__(self, train: Train) -> None:
        self._train = train

    def start(self, setup: Setup, data: Any) -> Run:
        return run_in_thread(self._train, setup, params=setup.params)


class Driven:
    """A trial of a training function.

    Args:
        train: The function.
        folder: For its checkpoints.
        per_trial: Its budget, as a study file says it.
        goal: Which report is the best.
        params: Of the trial.
    """

    def __init__(
        self,
        train: Train,
        folder: Path,
        per_trial: dict[str, Any],
        goal: Goal | None = None,
        **params: Any,
    ):
        self._train = train
        self._setup = Setup(params, 7, budget_from(per_trial), folder, goal=goal)
        self.folder = folder
        self.reports: list[Report] = []
        self.notes: list[Note] = []

    def attempt(self, until: float | None = None) -> Report:
        """Continue from the newest report's checkpoint, with random generators in another state.

        Without `until`, until the function returns."""
        torch.manual_seed(random.randrange(2**31))
        np.random.seed(random.randrange(2**31))
        saved = self.reports[-1].checkpoint if self.reports else None
        setup = replace(self._setup, resume_from=saved)
        runner = Runner(OfFunction(self._train), None, setup, note=self.notes.append)
        try:
            for report in runner.advance(math.inf if until is None else until):
                self.reports.append(report)
        finally:
            runner.close()
        return self.reports[-1]

    def run(self) -> Run:
        """A run of the function from the beginning."""
        return run_in_thread(self._train, self._setup, params=self._setup.params)

    @property
    def levels(self) -> list[float]:
        """Where it reported."""
        return [report.resource for report in self.reports]

    def metrics(self, *names: str) -> list[tuple[float, ...]]:
        """Some metrics of all reports."""
        return [tuple(report.metrics[name] for name in names) for report in self.reports]


@pytest.fixture
def drive(tmp_path: Path) -> Callable[..., Driven]:
    """Makes a trial of a function, in a folder of its own."""
    made = []

    def make(train: Train, per_trial: dict[str, Any], **params: Any) -> Driven:
        made.append(Driven(train, tmp_path / f"trial-{len(made)}", per_trial, **params))
        return made[-1]

    return make
