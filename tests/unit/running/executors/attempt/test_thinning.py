"""Attempts that make very many reports."""

import pytest

from hpsearch.domain import events as ev
from hpsearch.running.executors.attempt.thinning import MOST_REPORTS, SILENT_S, Thinning
from trials.contract import Budget, Unit
from unit.running.executors.test_worker import events_until, worker_of

LEVELS = (0.5, 1.0, 3.0, 9.0)
BUDGET = Budget(Unit.EPOCHS, 9.0, LEVELS)


def report(resource: float) -> ev.Reported:
    return ev.Reported(0, 1, resource, {"loss": 1.0})


@pytest.mark.parametrize("count", [1, 1001, 7_000, 20_000])
def test_the_first_ones_those_at_each_level_and_the_last_report_are_recorded(count):
    thinning = Thinning(BUDGET, clock=lambda: 0.0)
    all_of_them = [report(9.0 * n / count) for n in range(1, count + 1)]
    recorded = [each for each in all_of_them if thinning.due(each, until=9.0)]
    last = thinning.rest()
    recorded += [] if last is None else [last]
    assert (
        len({each.resource for each in recorded}) == len(recorded) <= MOST_REPORTS + len(LEVELS) + 1
    )
    assert recorded[: min(count, MOST_REPORTS)] == all_of_them[:MOST_REPORTS]
    for level in LEVELS:
        assert next(each for each in all_of_them if each.resource >= level) in recorded
    assert all_of_them[-1] in recorded
    assert bool(thinning.findings()) == (len(recorded) < count)


def test_a_report_after_a_silence_is_recorded():
    now = 0.0
    thinning = Thinning(Budget(Unit.STEPS, 1e9, (1e9,)), clock=lambda: now)
    for step in range(1, MOST_REPORTS + 1):
        assert thinning.due(report(step), until=1e9)
    assert not thinning.due(report(MOST_REPORTS + 1), until=1e9)
    now = SILENT_S
    assert thinning.due(report(MOST_REPORTS + 2), until=1e9)
    assert thinning.rest() is None


MANY = """
def train(params, trial):
    for step in range(1, 20_001):
        trial.report(4 * step / 20_000, {"loss": abs(step - 12_345)})
"""


def test_a_function_that_reports_twenty_thousand_times_says_so(tmp_path):
    worker = worker_of(tmp_path, str(tmp_path / "checkpoints"), task=MANY)
    worker.launch(ev.Launch(0, 1, "w0", {}, seed=1, until=4.0), None)
    events = events_until(worker, ev.Finished)
    reports = [event for event in events if isinstance(event, ev.Reported)]
    assert len(reports) < 2000
    assert {1.0, 2.0, 3.0, 4.0} <= {each.resource for each in reports}
    (finding,) = [each for each in events[-1].findings if each.name == "many_reports"]
    assert finding.evidence.startswith(f"20,000 reports, of which {len(reports):,} are recorded")
