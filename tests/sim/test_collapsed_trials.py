"""Collapsed trials in a whole study: they are stopped early, and a resumed study does the same."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome, Trial
from hpsearch.store.store import Store
from support.studies.driven import drive
from support.studies.small import Bowl, budget_of, spec_with

SPEC = spec_with(
    objective={"metric": "accuracy", "direction": "maximize"}, budget=budget_of(30, 18)
)


class Classifiers(Bowl):
    """Networks of 12 classes that learn late; those with x above 0.7 collapse."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        x = params["x"]
        if x > 0.7 or resource < 3.5:
            return {"accuracy": 1 / 12, "loss": 2.485 + 0.01 * x}
        return {"accuracy": 0.9 - x - 1 / resource**2, "loss": 1 + x}


def trials_of(url: str) -> list[Trial]:
    with closing(Store.open(url)) as store:
        return store.load("plain").trials


def ends(trials: list[Trial]) -> list[Any]:
    return [(t.params, t.state, t.resource, t.value, t.rung) for t in trials]


def test_collapsed_trials_are_stopped_early_and_no_others_and_an_interrupted_study_stops_the_same(
    sqlite_url, tmp_path
):
    drive(sqlite_url, SPEC, Classifiers())
    trials = trials_of(sqlite_url)
    stopped = [t for t in trials if t.attempts and t.attempts[-1].outcome is Outcome.PRUNED]
    assert stopped
    assert all(t.params["x"] > 0.7 and t.state is State.PRUNED for t in stopped)
    collapsed = [t for t in trials if t.params["x"] > 0.7]
    assert sum(t.resource == 18 for t in collapsed) <= 1
    best = max(trials, key=lambda t: t.value or 0.0)
    assert best.state is State.COMPLETE
    other = f"sqlite:///{tmp_path / 'interrupted.db'}"
    drive(other, SPEC, Classifiers(), stop_after=15)
    for _ in range(8):
        drive(other, SPEC, Classifiers(), stop_after=20, resume=True)
    drive(other, SPEC, Classifiers(), resume=True)
    assert ends(trials_of(other)) == ends(trials_of(sqlite_url))
