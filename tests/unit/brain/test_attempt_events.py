"""What attempts find out about their health is kept on their trials, and `show` prints it."""

from dataclasses import replace

import pytest

from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.running.executors.worker import Worker
from hpsearch.running.executors.worker_config import WorkerConfig
from support.studies.small import brain, spec_with
from trials.contract import Finding, Severity
from trials.running.report_grid import budget_from

PLATEAU = Finding("plateau", "the validation loss was 1 by step 2", Severity.NOTICE)
SPIKES = Finding("gradient_spikes", "the gradient norm was 55", Severity.WARNING)


def started():
    """A brain with trial 0 running in its first attempt."""
    study = brain(spec_with())
    study.begin(0.0)
    study.on_event(ev.SlotUp("a", "node", "cpu", 0.0), 0.0)
    study.on_tick(0.0)
    return study, study.history.trials[0]


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        (ev.Failed(0, 1, ErrorKind.DIVERGED, "nan", findings=(SPIKES,)), State.FAILED),
        (ev.Stopped(0, 1, findings=(SPIKES,)), State.QUEUED),
    ],
)
def test_the_last_word_of_an_attempt_leaves_its_findings_on_the_trial(ending, state):
    study, trial = started()
    study.on_event(ending, 1.0)
    assert trial.state is state
    assert trial.findings == [SPIKES]
    assert trial in study.history.drain().trials


def test_a_finished_trial_has_its_findings_and_a_well_later_attempt_clears_an_earlier_ones():
    study, trial = started()
    study.on_event(ev.Reported(0, 1, 9.0, {"loss": 1.0}), 1.0)
    study.on_event(ev.Finished(0, 1, findings=(PLATEAU,)), 1.0)
    assert trial.state is State.COMPLETE
    assert trial.findings == [PLATEAU]
    study, trial = started()
    study.on_event(ev.Stopped(0, 1, findings=(SPIKES,)), 1.0)
    study.on_tick(1.0)
    study.on_event(ev.Stopped(0, 1, findings=(SPIKES, PLATEAU)), 2.0)
    assert trial.findings == [SPIKES], "word from an attempt that is not the latest"
    study.on_event(ev.Stopped(0, 2), 3.0)
    assert trial.findings == []


def test_a_trial_that_was_pruned_still_hears_what_its_worker_found():
    study, trial = started()
    study._context.attempts.end(study.running[0], "pruned", 1.0)
    study._context.log.move(trial, State.PRUNED)
    study.history.drain()
    study.on_event(ev.Stopped(0, 1, findings=(PLATEAU,)), 2.0)
    assert trial.state is State.PRUNED
    assert study.history.drain().trials == [trial]
    assert trial.findings == [PLATEAU]


def test_a_worker_sends_the_findings_with_the_end_of_an_attempt(tmp_path):
    rows = [
        (f"{'a b c d' if n % 2 else 'e ' * 12} {n}", "odd" if n % 2 else "even") for n in range(24)
    ]
    (tmp_path / "data.csv").write_text(
        "text,label\n" + "".join(f"{text},{label}\n" for text, label in rows)
    )
    scratch = {"scratch": {"layers": 1, "width": 16, "heads": 2, "vocabulary": 80}}
    task = {
        "kind": "text_classification", "train": "data.csv", "validation": 0.5,
        "text": "text", "label": "label", "model": scratch,
    }  # fmt: skip
    still = {"learning_rate": 1e-9, "bucketing": False}
    budget = budget_from({"epochs": 6})
    config = WorkerConfig(
        task, str(tmp_path), still, budget, str(tmp_path / "checkpoints"), prepares=True
    )
    prepared = config.load_task()
    worker = Worker(config, lambda data: data)
    worker.launch(ev.Launch(0, 1, "a", {}, 1, until=6.0), prepared.prepare(still))
    events = []
    while not isinstance(events[-1] if events else None, ev.Finished | ev.Failed):
        events += worker.poll(60.0)
    ending = events[-1]
    assert isinstance(ending, ev.Finished), ending
    assert "plateau" in [finding.name for finding in ending.findings]
    assert all(isinstance(finding, Finding) for finding in ending.findings)


SIGNALLED = ev.Stopped(0, 1, why="told to end (SIGTERM)", signalled=True)


def ended_by_signals(*checkpoints: str | None) -> tuple[list[str | None], Trial]:
    """The outcomes of attempts that report, each at one resource more, and then end by a signal."""
    study, trial = started()
    for number, checkpoint in enumerate(checkpoints, start=1):
        if 0 not in study.running:
            break
        resource = 0.1 * number
        report = ev.Reported(0, number, resource, {"loss": 1.0}, checkpoint=checkpoint)
        study.on_event(report, number)
        study.on_event(replace(SIGNALLED, attempt=number), number)
        study.on_tick(number)
    return [attempt.outcome for attempt in trial.attempts if attempt.ended is not None], trial


def test_training_that_ends_its_own_worker_is_not_run_for_ever():
    outcomes, trial = ended_by_signals(*[None] * 9)
    assert outcomes == ["lost"] * 3
    assert (trial.state, trial.error_kind) == (State.FAILED, ErrorKind.LOST)
    assert trial.error_text == "lost 3 workers, the last one: told to end (SIGTERM)"


def test_a_worker_that_is_told_to_end_costs_nothing_where_its_trial_has_saved_more():
    outcomes, trial = ended_by_signals(*[f"at-{number}" for number in range(9)])
    assert outcomes == ["interrupted"] * 9
    assert trial.state is State.RUNNING


def test_what_is_saved_at_the_signal_counts_too():
    study, trial = started()
    study.on_event(replace(SIGNALLED, checkpoint="step-7"), 1.0)
    assert (trial.state, trial.checkpoint) == (State.QUEUED, "step-7")
    assert trial.attempts[0].outcome == "interrupted"
    assert trial.checkpoint_resource == 0.0


def test_a_worker_whose_node_leaves_costs_nothing():
    study, trial = started()
    study.on_event(replace(SIGNALLED, signalled=False), 1.0)
    assert trial.attempts[0].outcome == "interrupted"
