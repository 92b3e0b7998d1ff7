"""The brain, told what happens and asked what to do: no cluster, no database, no clock."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpsearch.brain.reopening import reopen, retry
from hpsearch.brain.study import Study
from hpsearch.brain.trial_log import missing_metrics
from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind, Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome, StudyState
from support.studies.small import (
    PLAIN,
    Simulation,
    brain,
    budget_of,
    history_for,
    search_by,
    spec_with,
)
from support.thoroughness import examples
from trials.contract import CheckpointSizes

NO_PRUNING: dict[str, Any] = {"search": search_by()}


def begun(study: Study, slots: int = 1) -> list[ev.Command]:
    """Begin at time 0 with some slots, and return what is ordered."""
    study.begin(0.0)
    for n in range(slots):
        study.on_event(ev.SlotUp(f"s{n}", "node", "cpu", 1.0), 0.0)
    return study.on_tick(0.0)


def report(command: ev.Command, resource: float, loss: float = 0.5, **more: Any) -> ev.Reported:
    return ev.Reported(
        command.trial,
        command.attempt,
        resource,
        {"loss": loss},
        checkpoint=f"at-{resource:g}",
        **more,
    )


def test_a_free_slot_is_given_a_new_trial_up_to_its_first_rung():
    (launch,) = begun(brain(spec_with()))
    assert isinstance(launch, ev.Launch)
    assert (launch.trial, launch.attempt, launch.slot, launch.until) == (0, 1, "s0", 1.0)
    assert 0 <= launch.params["x"] <= 1


def test_a_trial_pauses_at_a_rung_and_its_slot_takes_the_next_one():
    study = brain(spec_with())
    (launch,) = begun(study)
    assert study.on_event(report(launch, 1.0), 5.0) == [ev.Stop(0, 1)]
    trial = study.history.trials[0]
    assert (trial.state, trial.rung, trial.checkpoint) == (State.PAUSED, 0, "at-1")
    assert trial.value == 0.5
    assert trial.attempts[0].outcome is Outcome.PAUSED
    (following,) = study.on_tick(5.0)
    assert isinstance(following, ev.Launch)
    assert following.trial == 1


def saved(command: ev.Command, resource: float, best: str, **more: Any) -> ev.Reported:
    """A report whose checkpoint is `at-RESOURCE`, of 100 bytes, 30 of which are weights."""
    return report(
        command, resource, best=best, sizes=CheckpointSizes(now=1000, waiting=130, ended=30), **more
    )


def test_a_trial_that_waits_names_what_it_continues_from_and_its_best():
    study = brain(spec_with())
    (launch,) = begun(study)
    study.on_event(saved(launch, 1.0, "best"), 5.0)
    trial = study.history.trials[0]
    assert (trial.state, trial.checkpoint, trial.best_checkpoint) == (State.PAUSED, "at-1", "best")
    assert trial.checkpoint_bytes == 130


def test_a_trial_pruned_for_good_names_its_best_alone_and_one_that_trains_all_it_holds():
    study = brain(
        spec_with(search={"sampler": "random", "pruner": {"kind": "threshold", "upper": 0.9}})
    )
    (launch,) = begun(study)
    study.on_event(saved(launch, 1.0, "at-1"), 5.0)
    trial = study.history.trials[0]
    assert (trial.state, trial.checkpoint, trial.checkpoint_bytes) == (State.RUNNING, "at-1", 1000)
    study.on_event(saved(launch, 2.0, "at-1", loss=1.0), 6.0)
    assert (trial.state, trial.checkpoint, trial.best_checkpoint) == (State.PRUNED, "at-1", "at-1")
    assert trial.checkpoint_bytes == 30


def test_what_was_being_written_when_a_trial_was_pruned_counts_once_it_is_whole():
    study = brain(
        spec_with(search={"sampler": "random", "pruner": {"kind": "threshold", "lower": 0.4}})
    )
    (launch,) = begun(study)
    study.on_event(saved(launch, 1.0, "at-1"), 5.0)
    study.on_event(saved(launch, 2.0, "at-1", loss=0.1), 6.0)
    trial = study.history.trials[0]
    assert (trial.state, trial.value, trial.checkpoint) == (State.PRUNED, 0.1, "at-1")
    study.history.drain()
    study.on_event(
        ev.Stopped(0, 1, best="at-2", sizes=CheckpointSizes(now=900, waiting=140, ended=40)), 7.0
    )
    assert (trial.checkpoint, trial.best_checkpoint, trial.checkpoint_bytes) == ("at-2", "at-2", 40)
    assert study.history.drain().trials == [trial]
    study.on_event(ev.Stopped(0, 2, best="at-9"), 8.0)
    assert trial.checkpoint == "at-2", "no such attempt"


def test_a_late_word_brings_nothing_back_that_was_given_up():
    study = brain(
        spec_with(search={"sampler": "random", "pruner": {"kind": "threshold", "lower": 0.4}})
    )
    (launch,) = begun(study)
    study.on_event(saved(launch, 1.0, "at-1", loss=0.1), 6.0)
    trial = study.history.trials[0]
    trial.checkpoint = trial.best_checkpoint = trial.checkpoint_bytes = None
    study.on_event(ev.Stopped(0, 1, best="at-1", sizes=CheckpointSizes(1, 1, 1)), 7.0)
    assert (trial.checkpoint, trial.best_checkpoint, trial.checkpoint_bytes) == (None, None, None)


def test_a_promoted_trial_continues_from_its_checkpoint_as_a_new_attempt():
    study = brain(spec_with())
    commands = begun(study)
    for loss in (0.1, 0.5, 0.6):
        study.on_event(report(commands[0], 1.0, loss), 1.0)
        commands = study.on_tick(1.0)
    (promoted,) = commands
    assert isinstance(promoted, ev.Launch)
    assert (promoted.trial, promoted.attempt, promoted.resume_from) == (0, 2, "at-1")
    assert promoted.until == 3.0


def test_a_trial_goes_on_computing_as_its_first_attempt_did():
    study = brain(spec_with())
    commands = begun(study)
    assert commands[0].arithmetic is None
    for loss in (0.1, 0.5, 0.6):
        trial, attempt = commands[0].trial, commands[0].attempt
        study.on_event(ev.Began(trial, attempt, {"threads": trial + 1}), 1.0)
        study.on_event(report(commands[0], 1.0, loss), 1.0)
        commands = study.on_tick(1.0)
    (promoted,) = commands
    assert (promoted.trial, promoted.arithmetic) == (0, {"threads": 1})
    study.on_event(ev.Began(0, 2, {"threads": 1, "device": "another"}), 2.0)
    first, second = study.history.trials[0].attempts
    assert first.arithmetic == {"threads": 1}
    assert second.arithmetic == {"threads": 1, "device": "another"}


def test_a_report_that_passes_two_rungs_waits_at_neither_where_it_goes_on():
    study = brain(spec_with(budget=budget_of(40)))
    first, second = begun(study, slots=2)
    for loss in (0.1, 0.2, 0.3):  # what pauses at the first rung is better there than what follows
        study.on_event(report(second, 1.0, loss), 1.0)
        second = study.on_tick(1.0)[-1]
    study.on_event(report(second, 3.0, 9.0), 2.0)
    (second,) = study.on_tick(2.0)
    study.on_event(report(second, 4.0, 4.0), 3.0)
    (second,) = study.on_tick(3.0)
    assert study.on_event(report(first, 4.0, 3.0), 4.0) == [ev.Advance(0, 1, 9.0)]
    for _ in range(25):
        study.on_event(report(second, second.until, 20.0), 5.0)
        if second.until == 9:
            study.on_event(ev.Finished(second.trial, second.attempt), 5.0)
        launched = study.on_tick(5.0)
        assert launched or study.history.trials[second.trial].state is State.RUNNING
        (second,) = launched or [second]
        assert second.trial != 0, "a trial that runs is not promoted"


def test_a_trial_that_reports_rarely_pauses_and_comes_back_once():
    study = brain(spec_with())
    commands = begun(study)
    for loss in (0.1, 0.5, 0.6):
        study.on_event(report(commands[0], 4.0, loss), 1.0)
        commands = study.on_tick(1.0)
    assert [trial.rung for trial in study.history.trials] == [1, 1, 1]
    (promoted,) = commands
    assert isinstance(promoted, ev.Launch)
    assert (promoted.trial, promoted.attempt, promoted.until) == (0, 2, 9.0)


def test_a_trial_among_the_best_at_a_rung_goes_on_at_once():
    study = brain(spec_with())
    commands = begun(study)
    for loss in (0.5, 0.6):
        study.on_event(report(commands[0], 1.0, loss), 1.0)
        commands = study.on_tick(1.0)
    assert study.on_event(report(commands[0], 1.0, 0.1), 2.0) == [ev.Advance(2, 1, 3.0)]


def test_word_from_an_attempt_that_is_not_current_is_dropped():
    study = brain(spec_with())
    (launch,) = begun(study)
    study.on_event(ev.Lost(0, 1, "its node died"), 1.0)
    (again,) = study.on_tick(1.0)
    assert (again.trial, again.attempt) == (0, 2)
    study.history.drain()
    assert study.on_event(report(launch, 1.0), 2.0) == []
    assert study.on_event(ev.Finished(0, 1), 2.0) == []
    assert not study.history.drain()


def test_a_lost_worker_costs_one_attempt_and_the_trial_is_the_next_to_run():
    study = brain(spec_with(**NO_PRUNING))
    (launch,) = begun(study)
    study.on_event(report(launch, 1.0), 1.0)
    study.on_event(ev.SlotDown("s0", "its node died"), 2.0)
    assert study.history.trials[0].state is State.QUEUED
    study.on_event(ev.SlotUp("s1", "node", "cpu", 1.0), 3.0)
    (again,) = study.on_tick(3.0)
    assert isinstance(again, ev.Launch)
    assert (again.trial, again.attempt, again.slot, again.resume_from) == (0, 2, "s1", "at-1")


def test_a_trial_that_loses_too_many_workers_fails_as_lost():
    study = brain(spec_with(resources={"retries": 1}))
    commands = begun(study)
    for attempt in (1, 2):
        study.on_event(ev.Lost(0, attempt, "killed by the memory monitor"), 1.0)
        commands = study.on_tick(1.0)
    trial = study.history.trials[0]
    assert (trial.state, trial.error_kind) == (State.FAILED, "lost")
    assert "killed by the memory monitor" in (trial.error_text or "")
    assert commands[0].trial == 1


@pytest.mark.parametrize(
    "kind", [ErrorKind.DIVERGED, ErrorKind.OUT_OF_MEMORY, ErrorKind.TIMEOUT, ErrorKind.ERROR]
)
def test_a_failure_is_recorded_with_its_reason_and_the_study_goes_on(kind):
    study = brain(spec_with())
    begun(study)
    study.on_event(ev.Failed(0, 1, kind, "what happened"), 1.0)
    trial = study.history.trials[0]
    assert (trial.state, trial.error_kind) == (State.FAILED, kind)
    assert trial.error_text == "what happened"
    assert study.on_tick(1.0)[0].trial == 1


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (ev.Failed(0, 1, ErrorKind.ERROR, "ValueError: no test rows"), "no test rows"),
        (ev.Lost(0, 1, "its node died"), "its node died"),
        (ev.Stopped(0, 1, why="told to end"), "told to end"),
        (None, "no report for"),
    ],
)
def test_a_trial_trained_in_full_is_complete_however_it_ends_after_that(event, why):
    study = brain(spec_with(**NO_PRUNING))
    (launch,) = begun(study)
    assert study.on_event(report(launch, 9.0), 1.0) == []
    study.on_event(ev.Noted(0, 1, {}, {}, {"test_loss": 0.7, "loss": 0.6}), 2.0)
    now = 3.0
    if event is None:
        now = 3.0 + study.spec.resources.report_deadline_s
        assert ev.Stop(0, 1) in study.on_tick(now)
    else:
        study.on_event(event, now)
    (trial,) = study.history.trials[:1]
    assert (trial.state, trial.value) == (State.COMPLETE, 0.5)
    assert trial.reports[9.0].metrics == {"loss": 0.5, "test_loss": 0.7, "final_loss": 0.6}
    (attempt,) = trial.attempts
    assert attempt.outcome is Outcome.COMPLETE
    assert why in (attempt.note or "")
    assert trial.gpu_seconds == now
    finish = [each for each in study.history.decided if each.trial == 0][-1]
    assert why in finish.why


def test_a_target_is_reached_and_its_trial_goes_on_to_its_end():
    budget = {**PLAIN["budget"], "target": 0.6}
    study = brain(spec_with(budget=budget, **NO_PRUNING))
    commands = begun(study, slots=2)
    study.on_event(report(commands[0], 9.0), 1.0)
    assert study.on_tick(1.0) == [ev.Stop(1, 1, save=True)]
    study.on_event(ev.Finished(0, 1), 2.0)
    assert study.history.trials[0].state is State.COMPLETE


def test_a_study_whose_trials_all_fail_the_same_way_stops_early_and_says_so():
    study = brain(spec_with())
    begun(study)
    for number in range(3):
        study.on_event(
            ev.Failed(
                number, 1, ErrorKind.ERROR, f"FileNotFoundError: no such file at line {number}"
            ),
            1.0,
        )
        study.on_tick(1.0)
    assert study.finished
    study.close(2.0)
    assert study.history.study.state is StudyState.FAILED
    assert "3 trials failed the same way (error): FileNotFoundError" in (
        study.history.study.reason or ""
    )
    assert len(study.history.trials) == 3


def test_trials_that_fail_in_the_same_words_after_their_reports_end_the_study():
    study = brain(spec_with(**NO_PRUNING))
    begun(study)
    for number in range(3):
        study.on_event(report(ev.Stop(number, 1), 2.0 + number / 10), 1.0)
        text = f"OSError: /tmp/run-{number}/a.bin, at {hex(255 + number)}, line {number}"
        study.on_event(ev.Failed(number, 1, ErrorKind.ERROR, text), 1.0)
        study.on_tick(1.0)
    assert study.finished
    study.close(2.0)
    assert study.history.study.state is StudyState.FAILED
    assert "3 trials in a row failed the same way (error)" in (study.history.study.reason or "")


def test_a_report_that_says_it_is_the_last_does_not_pause_its_trial():
    study = brain(spec_with())
    (launch,) = begun(study)
    assert study.on_event(report(launch, 1.0, is_last=True), 5.0) == []
    study.on_event(ev.Finished(0, 1, "the function returned"), 6.0)
    assert study.history.trials[0].state is State.COMPLETE


def test_a_retried_trial_begins_anew_and_its_failure_is_no_evidence_any_more():
    spec = spec_with(**NO_PRUNING)
    study = brain(spec)
    begun(study)
    study.on_event(report(ev.Launch(0, 1, "s0", {}, 0, 9.0), 1.0, loss=0.01), 1.0)
    study.on_event(ev.Failed(0, 1, ErrorKind.DIVERGED, "nan"), 5.0)
    for number in (1, 2):
        study.on_tick(5.0)
        study.on_event(ev.Failed(number, 1, ErrorKind.ERROR, "same"), 5.0)
    study.on_tick(5.0)
    study.interrupt()
    study.on_event(ev.Stopped(3, 1), 6.0)
    study.close(6.0)
    history = study.history
    trial = history.trials[0]
    spent, params = trial.gpu_seconds, trial.params
    history.drain()
    retry(history, {0: "train.py has changed", 3: "it has not failed"}, 7.0)
    changes = history.drain()
    assert (changes.begun_again, [each.trial for each in changes.decisions]) == ([0], [0])
    assert "attempt 1 failed (diverged: nan), and since then train.py" in changes.decisions[0].why
    assert (trial.state, trial.error_kind, trial.value, trial.resource) == ("queued", None, None, 0)
    assert (trial.gpu_seconds, trial.reports) == (spent, {})
    assert spent > 0
    again = brain(spec, history)
    (launch,) = begun(again)
    assert (launch.trial, launch.attempt, launch.params, launch.resume_from) == (0, 2, params, None)
    again.on_event(report(launch, 1.0, loss=0.9), 8.0)
    assert trial.value == 0.9
    again.on_event(ev.Failed(0, 2, ErrorKind.ERROR, "same"), 9.0)
    assert not again.finished


def test_failures_after_a_success_do_not_stop_the_study():
    study = brain(spec_with())
    (launch,) = begun(study)
    study.on_event(report(launch, 1.0), 1.0)
    study.on_tick(1.0)
    for number in range(1, 5):
        study.on_event(ev.Failed(number, 1, ErrorKind.ERROR, "same"), 1.0)
        study.on_tick(1.0)
    assert not study.finished


def test_a_study_that_has_worked_is_not_given_up_after_a_resume():
    spec = spec_with(budget=budget_of(20))
    study = brain(spec)
    (launch,) = begun(study)
    study.on_event(report(launch, 1.0), 1.0)
    study.interrupt()
    study.close(1.0)
    again = brain(spec, study.history)
    (launch,) = begun(again)
    for _ in range(5):
        again.on_event(
            ev.Failed(
                launch.trial, launch.attempt, ErrorKind.ERROR, "the disk of its node is gone"
            ),
            2.0,
        )
        (launch,) = again.on_tick(2.0)
    assert not again.finished
    assert again.history.trials[0].state is State.PAUSED


def test_a_study_that_gave_up_and_is_resumed_gives_its_trials_their_turn():
    spec = spec_with(enqueue=[{"x": 0.125}, {"x": 0.5}], **NO_PRUNING)
    study = brain(spec, defaults={"x": 0.25})
    commands = begun(study, slots=4)
    for launch in commands[:3]:
        study.on_event(ev.Failed(launch.trial, 1, ErrorKind.ERROR, "no such file: train.csv"), 1.0)
    study.on_event(ev.Stopped(3, 1), 2.0)
    study.close(3.0)
    assert study.history.study.state is StudyState.FAILED
    reopen(study.history)
    done = Simulation(spec, study.history, defaults={"x": 0.25}, start=10.0).run()
    trials = done.history.trials
    assert done.history.study.state is StudyState.FINISHED
    assert [trial.params["x"] for trial in trials[:3]] == [0.25, 0.125, 0.5]
    assert [trial.state for trial in trials] == [State.COMPLETE] * 9
    assert all(trial.error_kind is None and trial.error_text is None for trial in trials)


def test_workers_lost_before_a_study_gave_up_count_against_no_trial_that_runs_again():
    spec = spec_with(resources={"retries": 1}, **NO_PRUNING)
    gave_up = Simulation(spec, workers=1, losses=tuple(n + 0.5 for n in range(6))).run().history
    assert gave_up.study.state is StudyState.FAILED
    assert [trial.error_kind for trial in gave_up.trials] == ["lost"] * 3
    reopen(gave_up)
    done = (
        Simulation(spec, gave_up, workers=1, losses=(1000.5, 1001.5, 1002.5), start=1000.0)
        .run()
        .history
    )
    assert [trial.state for trial in done.trials] == [State.COMPLETE] * 9
    for trial in done.trials[:3]:
        assert [attempt.outcome for attempt in trial.attempts] == [Outcome.LOST] * 3 + [
            Outcome.COMPLETE
        ]


def test_what_a_configuration_failed_of_stays_failed_when_its_study_gave_up():
    spec = spec_with(budget=budget_of(2))
    study = brain(spec)
    for launch, kind in zip(
        begun(study, slots=2), (ErrorKind.DIVERGED, ErrorKind.ERROR), strict=True
    ):
        study.on_event(ev.Failed(launch.trial, 1, kind, "what happened"), 1.0)
    study.on_tick(1.0)
    study.close(2.0)
    reopen(study.history, failed_too=False)
    assert [trial.state for trial in study.history.trials] == [State.FAILED] * 2
    reopen(study.history)
    assert [trial.state for trial in study.history.trials] == [State.FAILED, State.QUEUED]


def test_a_report_without_the_objective_fails_the_trial_and_names_what_it_has():
    study = brain(spec_with())
    begun(study)
    commands = study.on_event(ev.Reported(0, 1, 1.0, {"accuracy": 0.5, "f1": 0.4}), 1.0)
    assert commands == [ev.Stop(0, 1)]
    assert study.history.trials[0].error_text == "the report at 1 has no loss; it has accuracy, f1"


def test_a_report_of_nothing_and_one_of_too_much_are_told_in_a_line():
    spec = spec_with()
    nothing = ev.Reported(0, 1, 1.0, {})
    assert missing_metrics(spec, nothing) == "the report at 1 has no loss; it has no metric at all"
    much = ev.Reported(0, 1, 1.0, {f"m{n:05}": 1.0 for n in range(10_000)})
    text = missing_metrics(spec, much) or ""
    assert text.startswith("the report at 1 has no loss; it has m00000, m00001, ")
    assert text.endswith("m00019 and 9980 more")


def test_a_value_that_is_not_finite_is_reported_as_none_and_ends_as_diverged():
    study = brain(spec_with(**NO_PRUNING))
    (launch,) = begun(study)
    study.on_event(report(launch, 9.0, math.nan), 1.0)
    study.on_event(ev.Finished(0, 1), 1.0)
    trial = study.history.trials[0]
    assert trial.reports[9.0].value is None
    assert (trial.state, trial.error_kind) == (State.FAILED, "diverged")


def test_a_hung_trial_is_failed_at_its_deadline_and_told_to_stop():
    study = brain(spec_with(resources={"report_deadline": "60s"}))
    begun(study)
    assert study.on_tick(59.0) == []
    commands = study.on_tick(61.0)
    assert commands == [ev.Stop(0, 1)]
    assert study.history.trials[0].error_kind == "timeout"
    assert "report_deadline is 60 s" in (study.history.trials[0].error_text or "")
    assert len(study.on_tick(62.0)) == 0, "its slot stays taken until its worker answers or is gone"
    study.on_event(ev.Stopped(0, 1), 70.0)
    assert study.on_tick(70.0)[0].trial == 1


def test_the_defaults_are_tried_first_and_in_full():
    study = brain(spec_with(), defaults={"x": 0.25})
    (launch,) = begun(study)
    assert launch.params == {"x": 0.25}
    assert launch.until == 9.0
    assert study.history.trials[0].role is Role.DEFAULT


def test_what_is_enqueued_comes_before_what_is_drawn():
    study = brain(spec_with(enqueue=[{"x": 0.125}, {"x": 0.5}]))
    first, second = begun(study, slots=2)
    assert (first.params, second.params) == ({"x": 0.125}, {"x": 0.5})


def test_the_target_ends_the_study():
    study = brain(spec_with(budget=budget_of(50, target=0.2)))
    first, _ = begun(study, slots=2)
    study.on_event(report(first, 1.0, 0.15), 1.0)
    assert study.on_tick(1.0) == [ev.Stop(1, 1, save=True)]
    study.on_event(ev.Stopped(1, 1), 2.0)
    assert study.finished
    assert study.reason == "trial 0 reached the target with 0.15"


def test_an_interrupted_study_saves_what_runs_and_can_be_taken_up_again():
    spec = spec_with(**NO_PRUNING)
    study = brain(spec)
    begun(study, slots=2)
    study.interrupt()
    assert study.on_tick(5.0) == [ev.Stop(0, 1, save=True), ev.Stop(1, 1, save=True)]
    study.on_event(ev.Stopped(0, 1, 0.5, "mid"), 6.0)
    assert not study.finished
    study.abandon(7.0)
    study.close(7.0)
    assert study.history.study.state is StudyState.INTERRUPTED
    assert [t.state for t in study.history.trials] == [State.QUEUED, State.QUEUED]
    again = brain(spec, study.history)
    again.begin(100.0)
    again.on_event(ev.SlotUp("w", "node", "cpu", 1.0), 100.0)
    (launch,) = again.on_tick(100.0)
    assert isinstance(launch, ev.Launch)
    assert (launch.trial, launch.attempt, launch.resume_from) == (0, 2, "mid")


def test_a_study_ends_when_its_wall_clock_time_is_used_over_all_its_drivers():
    spec = spec_with(budget=budget_of(wall_clock="100s"))
    history = history_for(spec)
    history.study.active_seconds = 70.0
    study = brain(spec, history)
    begun(study)
    assert study.on_tick(29.0) == []
    assert study.on_tick(31.0) == [ev.Stop(0, 1, save=True)]
    study.on_event(ev.Stopped(0, 1), 32.0)
    assert study.finished


def test_leading_configurations_are_confirmed_on_fresh_seeds():
    budget = budget_of(20)
    spec = spec_with(budget=budget, search={"sampler": "random", "confirm": {"top": 2, "seeds": 3}})
    done = Simulation(spec).run()
    repeats = [t for t in done.history.trials if t.role is Role.CONFIRM]
    assert (
        len(repeats) == 5
    )  # values without noise tell the two apart once each has two; the winner's third is due
    for repeat in repeats:
        assert repeat.repeats is not None
        original = done.history.trials[repeat.repeats]
        assert repeat.params == original.params
        assert repeat.state is State.COMPLETE
    searched = [t.seed for t in done.history.trials if t.role is not Role.CONFIRM]
    for number in {t.repeats for t in repeats}:
        own = [t.seed for t in repeats if t.repeats == number]
        assert len({*searched, *own}) == len(searched) + len(own)
    assert len({t.seed for t in repeats}) == 3, "the leaders share them"


# -------------------------------------------------------------------------------------------------
# properties


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, int, int, float]]:
    """Arbitrary events: also late, repeated, contradictory and impossible ones."""
    kinds = [
        *("report", "finish", "stop", "fail", "lose"),
        *("slot up", "slot down", "tick", "interrupt"),
    ]
    event = st.tuples(
        st.sampled_from(kinds),
        st.integers(0, 6),
        st.integers(1, 3),
        st.floats(0.1, 9.0) | st.sampled_from([1.0, 3.0]),
    )
    return draw(st.lists(event, max_size=60))


def told(study: Study, kind: str, trial: int, attempt: int, amount: float, now: float) -> None:
    """Tell the brain one event of a story, of a trial that exists."""
    events: dict[str, ev.Event] = {
        "report": ev.Reported(trial, attempt, amount, {"loss": amount}, checkpoint="c"),
        "finish": ev.Finished(trial, attempt),
        "stop": ev.Stopped(trial, attempt, amount, "c"),
        "fail": ev.Failed(trial, attempt, ErrorKind.DIVERGED, "not finite"),
        "lose": ev.Lost(trial, attempt, "gone"),
        "slot up": ev.SlotUp(f"s{trial}", "node", "cpu", 1.0),
        "slot down": ev.SlotDown(f"s{trial}", "gone"),
    }
    if kind in events:
        study.on_event(events[kind], now)
    elif kind == "interrupt":
        study.interrupt()
    study.on_tick(now)


@given(stories(), st.sampled_from(["promotion", "none", "median"]))
@settings(max_examples=examples(150))
def test_no_story_leaves_a_terminal_state_or_makes_an_illegal_move(story, pruner):
    study = brain(spec_with(search=search_by(pruner=pruner)))
    begun(study)
    before: dict[int, State] = {}
    for now, (kind, trial, attempt, amount) in enumerate(story, start=1):
        told(study, kind, trial, attempt, amount, float(now))
        for t in study.history.trials:
            old = before.get(t.number, State.QUEUED)
            if old.terminal:
                assert t.state is old
            before[t.number] = t.state
            assert (t.state is State.RUNNING) == (t.number in study.running)
            assert sum(a.ended is None for a in t.attempts) == (t.state is State.RUNNING)
            assert math.isclose(t.gpu_seconds, sum(a.gpu_seconds for a in t.attempts))
