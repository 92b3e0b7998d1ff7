"""The record of a trial: its reports, moves, value, checkpoints and decisions."""

import math
from collections.abc import Mapping, Sequence

from hpsearch.domain.events import Failed, Finished, Noted, Reported, Stopped
from hpsearch.domain.facts import DecisionKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import MOVES, State
from hpsearch.domain.records import CONSTRAINT, Decision, ReportRecord, Trial
from hpsearch.search.ranking.selection import EXPECTED
from hpsearch.search.worth import Worth
from hpsearch.study_file.models import StudySpec
from trials.contract import SAMPLES, CheckpointSizes
from trials.settings import in_full, some

FINAL = "final_"
"""The beginning of the name of a metric that was measured again after the last report."""
SAME = 1e-6  # the share of its size by which an expectation may change without being written again


class TrialLog:
    """Changes the records of one study's trials, and marks them as changed."""

    def __init__(self, history: History) -> None:
        self._history = history

    def move(self, trial: Trial, to: State, ended: float | None = None) -> None:
        """Put a trial into another state, in which it may have ended."""
        what = f"trial {trial.number} at {trial.resource:g}"
        trial.state = MOVES.move(trial.state, to, what)
        if ended is not None:
            trial.ended = ended
        self._history.touch(trial)

    def decide(
        self, trial: Trial, kind: DecisionKind, why: str, now: float, against: Sequence[int] = ()
    ) -> None:
        """Record a decision: its kind, the reason, and the trials it was compared with."""
        decision = Decision(trial.number, kind, why, trial.resource, list(against), now)
        self._history.add_decision(decision)

    def update_value(self, trial: Trial, worth: Worth) -> None:
        """Make the newest report the trial's value if it is its best one."""
        values = worth.values
        if worth.improves and values is not None:
            trial.value = values[0]
            trial.values = list(values) if len(values) > 1 else None
            _keep_margins(trial, worth.margins)
        self._history.touch(trial)

    def keep_findings(self, event: Finished | Stopped | Failed) -> None:
        """Keep the findings of a trial's latest attempt, which may come after its trial's end."""
        trial = self._trial_of(event)
        findings = list(event.findings)
        if trial is not None and findings != trial.findings:
            trial.findings = findings
            self._history.touch(trial)

    def keep_last_checkpoint(self, event: Stopped) -> None:
        """Keep what a paused or pruned trial was writing when it was stopped."""
        trial = self._trial_of(event)
        if trial and trial.checkpoint and trial.state in (State.PAUSED, State.PRUNED):
            self.keep_checkpoints(trial, event.best, event.sizes)

    def _trial_of(self, event: Finished | Stopped | Failed) -> Trial | None:
        trials = self._history.trials
        if event.trial >= len(trials) or event.attempt != len(trials[event.trial].attempts):
            return None
        return trials[event.trial]

    def note(self, trial: Trial, event: Noted) -> None:
        trial.user_attrs = {**trial.user_attrs, **event.attributes}
        is_paired = trial.role is Role.CONFIRM
        kept = {name: each for name, each in event.kept.items() if is_paired or name != SAMPLES}
        trial.system_attrs = {**trial.system_attrs, **kept}
        _keep_margins(trial, event.constraints)
        self._history.touch(trial)
        if event.metrics and trial.reports:
            report = trial.reports[max(trial.reports)]
            report.metrics = with_later(report.metrics, event.metrics)
            self._history.add_report(report)

    def note_expected(
        self,
        trial: Trial,
        value: float | None,
        deviation: float | None,
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        """Note the value of the first objective that is expected of a trial in full, in the
        metric's own unit and sign, its standard deviation and its 90% interval, unless they are the
        `SAME`."""
        if _finite(value) is None:
            value = deviation = low = high = None
        now = value, *map(_finite, (deviation, low, high))
        before = trial.expected, trial.expected_deviation, trial.expected_low, trial.expected_high
        if all(map(_same, before, now)):
            return
        for name, each in zip(EXPECTED, now, strict=True):
            setattr(trial, name, each)
        self._history.touch_expected(trial)

    def expect_last_value(self, trial: Trial) -> None:
        """Note the last value of a complete trial of which nothing is expected, as of a repeat."""
        known = [at for at, report in trial.reports.items() if report.value is not None]
        if trial.expected is None and trial.values is None and known:
            self.note_expected(trial, trial.reports[max(known)].value, None)

    def note_checkpoint(self, trial: Trial, checkpoint: str | None, resource: float | None) -> None:
        """Note the newest checkpoint, to continue from, and its resource; None changes nothing."""
        if checkpoint is not None:
            trial.checkpoint = checkpoint
        if checkpoint is not None and resource is not None:
            trial.checkpoint_resource = resource

    def keep_checkpoints(
        self, trial: Trial, best: str | None, sizes: CheckpointSizes | None
    ) -> None:
        """Note what a trial keeps in its state, and the size; None changes nothing."""
        state = trial.state
        if best:
            trial.best_checkpoint = best
        if state.terminal and trial.best_checkpoint:
            trial.checkpoint = trial.best_checkpoint
        if sizes is not None:
            trial.checkpoint_bytes = sizes.now
            if state is State.PAUSED:
                trial.checkpoint_bytes = sizes.waiting
            elif state.terminal:
                trial.checkpoint_bytes = sizes.ended
        self._history.touch(trial)


def _finite(number: float | None) -> float | None:
    if number is None or not math.isfinite(number):
        return None
    return float(number)


def _same(before: float | None, now: float | None) -> bool:
    if before is None or now is None:
        return before is now
    return math.isclose(before, now, rel_tol=SAME)


def _keep_margins(trial: Trial, margins: Mapping[str, float]) -> None:
    if margins:
        named = {CONSTRAINT + name: over for name, over in margins.items()}
        trial.system_attrs = {**trial.system_attrs, **named}


def missing_metrics(spec: StudySpec, event: Reported) -> str | None:
    """The metrics of objectives and limits that a report lacks, in a sentence; None if none."""
    objectives = [objective.metric for objective in spec.objectives]
    wanted = dict.fromkeys([*objectives, *spec.constraints])
    absent = [metric for metric in wanted if metric not in event.metrics]
    if not absent:
        return None
    named = some(sorted(event.metrics)) or "no metric at all"
    return f"the report at {in_full(event.resource)} has no {', '.join(absent)}; it has {named}"


def not_finite(spec: StudySpec, event: Reported) -> str | None:
    """The first objective of a report that is not finite, in half a sentence; None if all are."""
    for objective in spec.objectives:
        value = event.metrics[objective.metric]
        if not math.isfinite(value):
            return f"{objective.metric} became {value} at {in_full(event.resource)}"
    return None


def with_later(metrics: Mapping[str, float], later: Mapping[str, float]) -> dict[str, float]:
    """The metrics of a last report with those that were measured after it, whose names begin with
    `FINAL` where the report has them too: it was judged by its own."""
    found = dict(metrics)
    for name, value in later.items():
        found[f"{FINAL}{name}" if name in metrics else name] = value
    return found


def record_of(spec: StudySpec, event: Reported, now: float) -> ReportRecord:
    """The record of a report that lacks nothing; its value is the first objective's."""
    metrics = event.metrics
    first = spec.objectives[0].metric
    value = metrics[first]
    return ReportRecord(
        trial=event.trial,
        resource=event.resource,
        value=float(value) if math.isfinite(value) else None,
        metrics=dict(metrics),
        attempt=event.attempt,
        step=event.step,
        elapsed=event.elapsed,
        created=now,
    )
