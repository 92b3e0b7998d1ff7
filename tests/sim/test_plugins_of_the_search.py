"""Samplers and pruners that plugins offer, in whole studies; none of them ends a study."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from optuna.pruners import BasePruner
from optuna.samplers import RandomSampler

from hpsearch.domain.lifecycle import State
from hpsearch.domain.plugins import door
from hpsearch.domain.plugins.offers import PrunerPlugin, SamplerPlugin
from hpsearch.errors import SpecError, UserError
from hpsearch.running.study_run.brain import build_study
from support.studies.small import Bowl, Simulation, budget_of, history_for, search_by, spec_with

pytestmark = pytest.mark.filterwarnings("ignore")  # Optuna's remarks on experimental classes

LOW = 0.25


class Low(RandomSampler):
    """Draws values below LOW, in steps of its seed; raises from a number of trials on."""

    def __init__(self, seed: int, most: int = 999, outside: bool = False) -> None:
        super().__init__(seed)
        if most < 0:
            raise ValueError("most must be at least 0")
        self.most, self.outside = most, outside

    def sample_independent(self, study: Any, trial: Any, name: Any, distribution: Any) -> Any:
        if trial.number >= self.most:
            raise RuntimeError("no more ideas")
        if self.outside:
            return distribution.high + 1
        return LOW * super().sample_independent(study, trial, name, distribution)


class Odd(BasePruner):
    """Stops trials with odd numbers; raises from a number of trials on."""

    def __init__(self, most: int = 999) -> None:
        self.most = most

    def prune(self, study: Any, trial: Any) -> bool:
        if trial.number >= self.most:
            raise RuntimeError("no opinion")
        return trial.number % 2 == 1


class Worse(Bowl):
    """Losses that rise, so that the pruner `patient` asks the one that it wraps."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        return {"loss": resource}


def nothing(*_: Any, **__: Any) -> str:
    return "a sampler"


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = (
        SamplerPlugin("low", f"{__name__}:Low", several=True),
        SamplerPlugin("high", f"{__name__}:Low"),
        SamplerPlugin("nothing", f"{__name__}:nothing"),
        SamplerPlugin("absent", "no_such_module:build"),
        PrunerPlugin("odd", f"{__name__}:Odd"),
    )
    monkeypatch.setattr(door, "installed", lambda: {"mine": offers})
    monkeypatch.setattr(door, "import_module", lambda name: _module(name))


def _module(name: str) -> Any:
    if name == __name__:
        return type("Module", (), {"Low": Low, "Odd": Odd, "nothing": nothing})
    raise ModuleNotFoundError(f"No module named {name!r}")


def finished(
    sampler: Any = "random", pruner: Any = "none", curves: Bowl | None = None, **changes: Any
) -> Simulation:
    spec = spec_with(search=search_by(sampler, pruner), budget=budget_of(12, 3), **changes)
    return Simulation(spec, curves=curves).run()


def drawn(simulation: Simulation) -> list[float]:
    return [trial.params["x"] for trial in simulation.history.trials]


def test_a_sampler_of_a_plugin_draws_every_trial_from_a_seed_of_its_own():
    values = drawn(finished("low"))
    assert max(values) <= LOW
    assert len(set(values)) == len(values) == 12
    assert values == drawn(finished({"kind": "low", "most": 500}))
    assert values != drawn(finished("low", seed=2))


def test_it_draws_for_several_objectives_if_it_says_so():
    objectives = [{"metric": "loss", "direction": "minimize"} for _ in "ab"]
    objectives[1]["metric"] = "size"
    search = search_by("low", "none")
    assert spec_with(search=search, objective=objectives).search.sampler.kind == "low"
    with pytest.raises(SpecError, match=r"high supports only one objective; .* brute_force, low$"):
        spec_with(search=search_by("high", "none"), objective=objectives)


@pytest.mark.parametrize(
    ("search", "what"),
    [
        ({"sampler": {"kind": "low", "most": -1}}, "sampler: low refuses it: most must be at"),
        ({"sampler": {"kind": "low", "least": 1}}, "sampler: low refuses it: .*argument 'least'"),
        ({"sampler": {"kind": "low", "seed": 1}}, "sampler: the seed is derived from the study's"),
        ({"sampler": "nothing"}, "sampler: nothing refuses it: its plugin gives str, not BaseSam"),
        ({"sampler": "absent"}, "sampler: absent does not work: ModuleNotFoundError: No module"),
        ({"sampler": "lov"}, "sampler: 'lov' is not a sampler; did you mean low"),
        ({"pruner": {"kind": "odd", "least": 1}}, "pruner: odd refuses it: .*argument 'least'"),
        ({"pruner": "ood"}, "pruner: 'ood' is not a pruner; did you mean odd"),
    ],
)
def test_what_a_plugin_refuses_is_a_mistake_of_the_study_file_with_its_line(search, what):
    with pytest.raises(SpecError, match=rf"yaml:\d+: search.{what}"):
        spec_with(search=search)


@pytest.mark.parametrize(
    ("sampler", "reason"),
    [
        ({"kind": "low", "most": 5}, "RuntimeError: no more ideas"),
        ({"kind": "low", "outside": True}, "ValueError: .*"),
    ],
)
def test_a_sampler_that_raises_is_named_once_and_the_rest_is_drawn_at_random(
    sampler, reason, caplog
):
    left = finished(sampler)
    assert all(trial.state is State.COMPLETE for trial in left.history.trials)
    [said] = caplog.messages
    assert re.match(f"the sampler low is left out: {reason} - ", said)
    first = sampler.get("most", 0)
    values, by_chance = drawn(left), drawn(finished("random"))
    assert values[first:] == by_chance[first:]
    assert max(values[:first], default=0.0) <= LOW
    decisions = [each for changes in left.written for each in changes.decisions]
    why = {each.trial: each.why for each in decisions if each.kind == "start"}
    assert [why[n] for n in (first - 1, first) if n >= 0][-1] == "drawn by random"


def resumed(spec: Any, until: int, change: Callable[[], None]) -> list[float]:
    """What is drawn by a study whose driver ends once it has begun so many trials."""
    before = Simulation(spec, workers=1)
    while len(before.history.trials) <= until:
        before.tick()
    history = history_for(spec)
    history.study.system_attrs = before.history.study.system_attrs
    for trial in before.history.trials[:until]:
        history.add_trial(trial)
    change()
    return drawn(Simulation(spec, history, workers=1, start=before.executor.now).run())


def test_a_sampler_that_was_left_out_stays_out_when_the_study_is_resumed(monkeypatch):
    search = search_by({"kind": "low", "most": 5}, "none")
    spec = spec_with(search=search, budget=budget_of(12, 3))
    through = drawn(Simulation(spec, workers=1).run())

    def mend() -> None:
        monkeypatch.setattr(Low, "sample_independent", RandomSampler.sample_independent)

    assert resumed(spec, 8, mend) == through


def test_a_pruner_of_a_plugin_stops_trials():
    states = [trial.state for trial in finished(pruner="odd").history.trials]
    assert states == [State.COMPLETE, State.PRUNED] * 6


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_pruner_that_raises_is_named_once_and_stops_nothing(wrapped, caplog):
    pruner = {"kind": "odd", "most": 0}
    if wrapped:
        pruner = {"kind": "patient", "patience": 0, "wrapped_pruner": pruner}
    left = finished(pruner=pruner, curves=Worse())
    assert all(trial.state is State.COMPLETE for trial in left.history.trials)
    [said] = caplog.messages
    assert f"the pruner {pruner['kind']} is left out: RuntimeError: no opinion" in said


def test_a_study_whose_sampler_is_not_installed_any_more_is_refused(monkeypatch):
    spec = spec_with(search=search_by("low", "odd"))
    monkeypatch.setattr(door, "installed", dict)
    with pytest.raises(UserError, match="search: low is offered by no plugin that is installed"):
        build_study(history_for(spec), spec)
