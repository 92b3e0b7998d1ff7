"""SMAC in the races: its facade for several fidelities, by ask and tell."""

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpsearch.search.rungs import Verdict
from races.curves import Task
from races.race import Job


class SmacPeer:
    """Hyperband with random forests, with default arguments; it evaluates a configuration at a
    budget, which is rounded to a level. A configuration that gets a larger budget goes on from
    where it was."""

    def __init__(self, task: Task, seed: int) -> None:
        try:
            from smac import MultiFidelityFacade, Scenario
            from smac.runhistory.dataclasses import TrialValue
        except ModuleNotFoundError as error:
            raise SystemExit(f"{error}: pip install '.[benchmarks]'") from error

        folder = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        scenario = Scenario(
            _space(task.space),
            deterministic=True,
            min_budget=1,
            max_budget=task.total,
            seed=seed,
            output_directory=folder,
        )
        self._value = TrialValue
        self._facade = MultiFidelityFacade(
            scenario, _never_called, logging_level=False, overwrite=True
        )
        self._numbers: dict[Any, int] = {}
        """By configuration, its trial."""
        self._running: dict[int, Any] = {}

    def ask(self) -> Job:
        """The facade's next configuration and budget."""
        asked = self._facade.ask()
        trial = self._numbers.setdefault(asked.config, len(self._numbers))
        self._running[trial] = asked
        return Job(trial, dict(asked.config))

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """Go on up to the budget."""
        if resource < round(self._running[trial].budget):
            return Verdict.CONTINUE
        self.finish(trial, resource, value)
        return Verdict.PAUSE

    def finish(self, trial: int, resource: int, value: float) -> None:
        """Tell the facade the value at the budget."""
        self._facade.tell(self._running.pop(trial), self._value(cost=value), save=False)

    def recommended(self) -> Mapping[str, Any] | None:
        """The incumbent."""
        incumbents = self._facade.intensifier.get_incumbents()
        return dict(incumbents[0]) if incumbents else None


def _never_called(config: Any, seed: int, budget: float) -> float:
    raise AssertionError("trials are asked for and told")


def _space(space: dict[str, dict[str, Any]]) -> Any:
    """A space of numbers and categories, in SMAC's terms."""
    from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

    found = ConfigurationSpace()
    for name, text in space.items():
        if text["type"] == "categorical":
            found.add(Categorical(name, list(text["choices"])))
        else:
            make = Float if text["type"] == "float" else Integer
            found.add(make(name, (text["low"], text["high"]), log=text.get("log", False)))
    return found
