"""The live state of a study: its records, and the changes of them.

At the end of each tick `History.drain` hands everything that was touched to the store, which writes
it in one transaction. Loading a study from the database gives the same history back.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.packed import packed
from hpsearch.domain.records import (
    Attempt,
    Decision,
    Environment,
    ReportRecord,
    Request,
    Revision,
    StudyRecord,
    Trial,
    Version,
)


@dataclass(slots=True)
class Changes:
    """The records that a tick touched, at its end."""

    study: StudyRecord | None = None
    trials: list[Trial] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    reports: list[ReportRecord] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    environments: list[Environment] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    revisions: list[Revision] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    begun_again: list[int] = field(default_factory=list)
    """Trials whose reports on record go, before any of `reports` is written."""

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))


class History:
    """The records of one study, and those that were touched since the last `drain`.

    Trials are numbered from 0 without gaps: `trials[n].number == n`. There may be very many.
    Whatever is decided often therefore never goes through all of them: it reads those that have
    changed, and what is counted here.
    """

    def __init__(self, study: StudyRecord, trials: list[Trial] | None = None) -> None:
        self.study = study
        self.trials: list[Trial] = trials or []
        self.versions: list[Version] = []
        """In order; version n is at index n - 1. Empty where none is on record."""
        self.revisions: list[Revision] = []
        """Changes of code, in order; number n is at index n - 1."""
        self._touched_study = False
        self._touched_revisions: dict[int, None] = {}
        self._touched_trials: dict[int, None] = {}
        self._touched_attempts: dict[tuple[int, int], None] = {}
        self._touched_reports: dict[tuple[int, float], None] = {}
        self._once = Changes()
        """Decisions, environments and requests, which are written once and not kept in memory, and
        the trials that have begun again."""
        self._clock = 0
        self._changed: dict[int, int] = {}
        """By the number of a trial, the clock of its last change; the latest change last."""
        self._shown: dict[int, int] = {}
        """The same without changes of what is expected of a trial."""
        self.states: Counter[State] = Counter()
        """The number of trials in each state."""
        self.open: set[int] = set()
        """The trials that have not ended."""
        self.repeats: list[int] = []
        """The repeats (role `confirm`), ascending."""
        self.revision_runs: list[int] = []
        """The runs that test changes of code (role `revision`), ascending."""
        self._counted: list[State] = []
        """By trial, the state that it is counted in."""
        for trial in self.trials:
            self._mark(trial.number)

    def add_trial(self, trial: Trial) -> Trial:
        """Append a trial; its number must be the next one."""
        following = len(self.trials)
        assert trial.number == following, f"trial {trial.number} is not the next: {following}"
        self.trials.append(trial)
        self.touch(trial)
        for attempt in trial.attempts:
            self.touch_attempt(attempt)
        for report in trial.reports.values():
            self._touched_reports[(report.trial, report.resource)] = None
        return trial

    def add_attempt(self, attempt: Attempt) -> Attempt:
        """Append an attempt to its trial; its number must be the next one, from 1."""
        attempts = self.trials[attempt.trial].attempts
        following = len(attempts) + 1
        assert attempt.number == following, f"attempt {attempt.number} is not the next: {following}"
        attempts.append(attempt)
        self.touch_attempt(attempt)
        return attempt

    def add_report(self, report: ReportRecord) -> ReportRecord:
        """Record a report in place of one at the same resource, which a lost attempt made."""
        trial = self.trials[report.trial]
        if not isinstance(trial.reports, dict):
            trial.reports = dict(trial.reports)
        trial.reports[report.resource] = report
        self._touched_reports[(report.trial, report.resource)] = None
        self._mark(report.trial)
        return report

    def forget_reports(self, trial: Trial) -> None:
        """Let a trial begin again without the reports it has made."""
        for resource in trial.reports:
            self._touched_reports.pop((trial.number, resource), None)
        trial.reports = {}
        self._once.begun_again.append(trial.number)
        self.touch(trial)

    def add_decision(self, decision: Decision) -> None:
        self._once.decisions.append(decision)

    @property
    def decided(self) -> Sequence[Decision]:
        """The decisions that were recorded since the last `drain`."""
        return self._once.decisions

    def add_environment(self, environment: Environment) -> None:
        self._once.environments.append(environment)

    @property
    def version(self) -> int:
        """The number of the version that trials run now."""
        return max(1, len(self.versions))

    def add_version(self, version: Version) -> None:
        """Begin a version; its number must be the next one, from 1."""
        assert version.number == len(self.versions) + 1, "versions are numbered without gaps"
        self.versions.append(version)
        self._once.versions.append(version)

    def touch_revision(self, revision: Revision) -> None:
        """Mark a change of code as new or changed; a new one gets the next number, from 1."""
        if revision.number > len(self.revisions):
            self.revisions.append(revision)
        self._touched_revisions[revision.number] = None

    def add_handled(self, request: Request) -> None:
        self._once.requests.append(request)

    def touch(self, trial: Trial) -> None:
        """Mark a trial's row as changed; to be called after the change."""
        self._touched_trials[trial.number] = None
        self._mark(trial.number)

    def touch_expected(self, trial: Trial) -> None:
        """Mark a trial of which nothing has changed but what is expected of it."""
        self._touched_trials[trial.number] = None
        self._note(self._changed, trial.number)

    def replace(self, trial: Trial) -> None:
        """Put a trial of the database in its place, which needs not be written."""
        self.trials[trial.number : trial.number + 1] = [trial]
        self._mark(trial.number)

    def changed_since(self, clock: int) -> tuple[int, list[int]]:
        """The clock for a reader's next call, and the numbers of the trials that were touched since
        its last one; the clock is 0 at first."""
        return self._clock, _since(clock, self._changed)

    def shown_since(self, clock: int) -> tuple[int, list[int]]:
        """The same for a reader of what trials have shown, not of what is expected of them."""
        return self._clock, _since(clock, self._shown)

    def _mark(self, number: int) -> None:
        self._note(self._changed, number)
        self._note(self._shown, number)
        self._count(self.trials[number])

    def _note(self, clocks: dict[int, int], number: int) -> None:
        self._clock += 1
        clocks.pop(number, None)
        clocks[number] = self._clock

    def _count(self, trial: Trial) -> None:
        number, state = trial.number, trial.state
        if number == len(self._counted):
            self._counted.append(state)
            if trial.role is Role.CONFIRM:
                self.repeats.append(number)
            elif trial.role is Role.REVISION:
                self.revision_runs.append(number)
        elif state is self._counted[number]:
            return
        else:
            self.states[self._counted[number]] -= 1
            self._counted[number] = state
        self.states[state] += 1
        if state.terminal:
            self.open.discard(number)
        else:
            self.open.add(number)

    @property
    def searched(self) -> int:
        """The number of trials of the search."""
        return len(self.trials) - len(self.repeats) - len(self.revision_runs)

    def touch_attempt(self, attempt: Attempt) -> None:
        self._touched_attempts[(attempt.trial, attempt.number)] = None

    def touch_study(self) -> None:
        self._touched_study = True

    def drain(self) -> Changes:
        """Return the records touched since the last call, and start again with none."""
        changes, self._once = self._once, Changes()
        changes.study = self.study if self._touched_study else None
        changes.revisions = [self.revisions[n - 1] for n in self._touched_revisions]
        changes.trials = [self.trials[n] for n in self._touched_trials]
        changes.attempts = [self.trials[t].attempts[n - 1] for t, n in self._touched_attempts]
        changes.reports = [self.trials[t].reports[at] for t, at in self._touched_reports]
        for trial in changes.trials:
            if trial.state.terminal:  # there may be very many
                trial.reports = packed(trial.reports)
        self._touched_study, self._touched_revisions = False, {}
        self._touched_trials, self._touched_attempts, self._touched_reports = {}, {}, {}
        return changes


def _since(clock: int, clocks: dict[int, int]) -> list[int]:
    numbers = []
    for number, at in reversed(clocks.items()):
        if at <= clock:
            break
        numbers.append(number)
    return numbers
