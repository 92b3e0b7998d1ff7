"""A whole study on the virtual clock, through the real driver and a database in memory."""

from benchmarks.simulation.running import simulate
from hpsearch.brain.study import Study
from hpsearch.domain.history import Changes, History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState
from support.studies.small import Bowl, budget_of, search_by, spec_with

PROMOTION = search_by(pruner="promotion")


def story(history: History) -> list[tuple[object, ...]]:
    return [
        (t.params, t.state, t.value, t.resource, t.gpu_seconds, t.ended) for t in history.trials
    ]


def test_the_same_study_has_the_same_story_and_ends_like_a_real_one():
    spec = spec_with(search=PROMOTION)
    assert story(simulate(spec, Bowl(), 3)) == story(simulate(spec, Bowl(), 3))
    history = simulate(spec_with(search=PROMOTION), Bowl(), 2)
    assert history.study.state is StudyState.FINISHED
    assert {trial.state for trial in history.trials} == {State.COMPLETE, State.PRUNED}


def test_more_workers_take_less_time_and_the_wall_clock_ends_it_to_the_second():
    spec = spec_with(search={"pruner": "none"})
    one, three = (simulate(spec, Bowl(), workers).study.active_seconds for workers in (1, 3))
    assert one / 3 <= three < one / 2
    spec = spec_with(budget=budget_of(wall_clock=40), search={"pruner": "none"})
    assert simulate(spec, Bowl(), 2).study.active_seconds == 40  # within the first two trials
    spec = spec_with(budget=budget_of(wall_clock=250))
    assert 200 < simulate(spec, Bowl(), 2).study.active_seconds <= 250


def test_it_can_be_looked_at_when_nothing_happens():
    seen: list[float] = []

    def watch(study: Study, changes: Changes, now: float) -> None:
        seen.append(now)

    simulate(spec_with(), Bowl(), 2, moments=[0.25, 0.5], watch=watch)
    assert {0.25, 0.5} <= set(seen)


def test_reports_may_be_far_apart_and_a_configuration_that_diverges_fails():
    history = simulate(spec_with(search={"pruner": "none"}), Bowl(seconds_per_unit=1e5), 2)
    assert {trial.state for trial in history.trials} == {State.COMPLETE}
    failed = [t for t in simulate(spec_with(), Bowl(diverges=0.7), 2).trials if t.params["x"] > 0.7]
    assert failed
    assert {(t.state, t.error_kind) for t in failed} == {(State.FAILED, "diverged")}
