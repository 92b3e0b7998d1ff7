"""What another hour would bring, and studies that end when that is not worth it."""

from hpsearch.brain.reopening import reopen
from hpsearch.domain.facts import NextHour, Role
from hpsearch.domain.records import StudyState
from support.studies.small import Bowl, Simulation, search_by, spec_with

MANY = {"trials": 60, "per_trial": {"epochs": 9}}


def searched(worth=None, history=None, curves=None, **changes):
    """A study that has run to its end, and all that it was told of another hour."""
    budget = {**MANY, **changes.pop("budget", {})}
    budget |= {} if worth is None else {"worth": worth}
    changes.setdefault("search", search_by("random", "promotion"))
    spec = spec_with(budget=budget, **changes)
    simulation = Simulation(spec, history=history, curves=curves or Bowl(60.0), workers=2)
    told: list[NextHour | None] = []
    while not simulation.study.finished:
        simulation.tick()
        found = NextHour.of(simulation.history.study.system_attrs)
        if found not in told[-1:]:
            told.append(found)
    simulation.study.close(simulation.executor.now)
    return simulation.history, [each for each in told if each is not None]


def test_the_gain_of_another_hour_is_told_once_one_was_spent_and_falls_as_the_study_goes_on():
    _, told = searched()
    first, last = told[0], told[-1]
    assert first.per == "gpu_hour"
    assert first.trials >= 10
    assert 0 < last.gain < first.gain / 2
    assert 0 < last.chance < first.chance < 1
    assert len(told) < 20, "it looks rarely"


def test_a_study_ends_when_another_hour_is_steadily_worth_too_little_and_says_so():
    history, told = searched({"gain": 0.004})
    assert history.study.state is StudyState.FINISHED
    assert len(history.trials) < 60
    assert [each.below for each in told[-3:]] == [1, 2, 3]
    assert told[-1].than == 0.004
    assert history.study.reason.startswith("another GPU hour is expected to bring 0.00")
    assert history.study.reason.endswith("less than the 0.004 that it is to be worth")
    longer, _ = searched({"gain": 0.001})
    assert len(longer.trials) > len(history.trials)


def test_the_leaders_are_confirmed_before_such_an_end_and_nothing_is_spent_on_more():
    search = search_by("random", "promotion", confirm={"top": 2, "seeds": 2})
    history, _ = searched({"gain": 0.004}, search=search, budget={"trials": None, "gpu_hours": 40})
    assert "another GPU hour is expected" in history.study.reason
    repeats = [trial for trial in history.trials if trial.role is Role.CONFIRM]
    assert 2 <= len(repeats) <= 4
    assert sum(trial.gpu_seconds for trial in history.trials) < 10 * 3600


def test_a_study_that_ended_so_goes_on_with_a_smaller_gain():
    ended, _ = searched({"gain": 0.004})
    before = len(ended.trials)
    reopen(ended)
    again, told = searched({"gain": 1e-6}, history=ended)
    assert len(again.trials) == 60 > before
    assert told[-1].below == 0


def test_a_small_study_is_told_nothing_and_ends_as_it_would_have():
    few, told = searched({"gain": 10.0}, budget={"trials": 8})
    assert (len(few.trials), told) == (8, [])
    quick, told = searched({"gain": 10.0}, budget={"trials": 30}, curves=Bowl(1.0))
    assert (len(quick.trials), told) == (30, []), "it has spent less than an hour"


def test_without_a_pruner_a_trial_is_foretold_too():
    worth = {"gain": 1e-9, "per": "trial"}
    _, told = searched(worth, search=search_by("tpe", "none"), budget={"trials": 20})
    assert {each.per for each in told} == {"trial"}
    assert told[-1].gain > 0
