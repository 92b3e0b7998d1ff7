"""The rules that a database always keeps, and the places where it does not.

For `hpsearch db check`, and for tests that kill things. They hold at every moment, also while
drivers work: read them in one transaction. `hpsearch.store.audit.checkpoints` looks at files.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import IN_FULL, Outcome, StudyRecord, Trial
from hpsearch.errors import Damaged
from hpsearch.store import contents, schema
from hpsearch.store.reading.attempts import versions_of
from hpsearch.store.schema import STUDY
from hpsearch.store.study_texts import budget_in
from hpsearch.study_file.models import StudyBudget
from trials.settings import some

SAME_SECONDS = 1e-6  # relative error allowed between two sums of the same numbers

LAST_OUTCOMES: dict[State, frozenset[Outcome]] = {
    # A trial that failed may be retried, and is where its study gave up and is resumed.
    State.QUEUED: frozenset({Outcome.LOST, Outcome.INTERRUPTED, Outcome.FAILED}),
    State.PAUSED: frozenset({Outcome.PAUSED}),
    State.COMPLETE: frozenset({Outcome.COMPLETE}),
    # A trial that waited, at a rung or for a slot, is pruned where its study ends.
    State.PRUNED: frozenset(
        {Outcome.PRUNED, Outcome.PAUSED, Outcome.LOST, Outcome.INTERRUPTED, Outcome.FAILED}
    ),
    State.FAILED: frozenset({Outcome.FAILED, Outcome.LOST}),
}
"""The possible outcomes of the last attempt of a trial that does not run."""

CONTINUED = (Outcome.LOST, Outcome.INTERRUPTED, Outcome.PAUSED, Outcome.FAILED)
"""How an attempt may have ended that another one of the same trial followed; after one that failed,
where it was retried."""
WANTED_AFTER = (Outcome.PAUSED, Outcome.PRUNED)
"""The same of a trial that somebody wanted trained in full, also while it waits for a slot."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Something in the database that must not be."""

    study: str
    trial: int | None
    what: str

    def __str__(self) -> str:
        if self.trial is None:
            return f"{self.study}: {self.what}"
        return f"{self.study}, trial {self.trial}: {self.what}"


@dataclass(frozen=True)
class StudyTrials:
    """The trials of a study, with its budget; None for a study that was not made from a file."""

    trials: Mapping[int, Trial]  # by number
    budget: StudyBudget | None


Rule = Callable[[Trial, StudyTrials], Iterator[str]]
"""Says in words where a trial of a study does not keep a rule."""


def attempts_are_numbered_from_1(trial: Trial, _: StudyTrials) -> Iterator[str]:
    numbers = [attempt.number for attempt in trial.attempts]
    if numbers != list(range(1, len(numbers) + 1)):
        between = f"from {numbers[0]} to {numbers[-1]}"
        yield f"{len(numbers)} attempts have numbers {between}: some are missing"


def only_a_running_trial_has_a_live_attempt(trial: Trial, _: StudyTrials) -> Iterator[str]:
    live = sum(attempt.outcome is None for attempt in trial.attempts)
    if live != (trial.state is State.RUNNING):
        yield f"it is {trial.state} and has {live} live attempts"


def only_a_complete_trial_was_completed(trial: Trial, _: StudyTrials) -> Iterator[str]:
    wins = sum(attempt.outcome is Outcome.COMPLETE for attempt in trial.attempts)
    if trial.attempts and wins != (trial.state is State.COMPLETE):
        yield f"it is {trial.state} and has {wins} winning attempts"


def the_last_attempt_leads_to_the_state(trial: Trial, _: StudyTrials) -> Iterator[str]:
    outcome = trial.attempts[-1].outcome if trial.attempts else None
    legal = LAST_OUTCOMES.get(trial.state)
    if trial.state is State.QUEUED and IN_FULL in trial.system_attrs and outcome in WANTED_AFTER:
        return
    if outcome is not None and legal is not None and outcome not in legal:
        yield f"it is {trial.state}, but its last attempt ended {outcome}"


def nothing_follows_an_attempt_that_ended_its_trial(trial: Trial, _: StudyTrials) -> Iterator[str]:
    continued = {*CONTINUED, *WANTED_AFTER} if IN_FULL in trial.system_attrs else CONTINUED
    for attempt in trial.attempts[:-1]:
        if attempt.outcome is not None and attempt.outcome not in continued:
            ended = f"attempt {attempt.number} ended {attempt.outcome}"
            yield f"{ended}, and yet another one followed"


def an_attempt_with_an_outcome_has_an_end(trial: Trial, _: StudyTrials) -> Iterator[str]:
    for attempt in trial.attempts:
        is_live = attempt.outcome is None
        ends_early = attempt.ended is not None and attempt.ended < attempt.started
        if is_live != (attempt.ended is None) or ends_early:
            yield f"the times of attempt {attempt.number} do not agree with its outcome"


def a_trial_is_charged_what_its_attempts_took(trial: Trial, _: StudyTrials) -> Iterator[str]:
    spent = sum(attempt.gpu_seconds for attempt in trial.attempts)
    if abs(trial.gpu_seconds - spent) > SAME_SECONDS * (1 + abs(spent)):
        yield f"it is charged {trial.gpu_seconds:g} GPU-seconds, its attempts took {spent:g}"


def no_report_lies_beyond_the_training(trial: Trial, _: StudyTrials) -> Iterator[str]:
    for resource in trial.reports:
        if resource > trial.resource:
            yield f"it has a report at {resource:g}, but trained to {trial.resource:g} only"


def no_report_is_from_before_a_retry(trial: Trial, _: StudyTrials) -> Iterator[str]:
    for report in trial.reports.values():
        if report.attempt is not None and report.attempt <= trial.retried:
            of = f"attempt {report.attempt}, after which it began again"
            yield f"it has a report at {report.resource:g} of {of}"


def no_attempt_goes_on_past_the_budget(trial: Trial, study: StudyTrials) -> Iterator[str]:
    """An attempt has one report at its trial's budget or past it, to which later measurements are
    added. How far past it depends on users' code."""
    if study.budget is None:
        return
    total = study.budget.per_trial.total
    past = [report for report in trial.reports.values() if report.resource >= total]
    for attempt, n in Counter(report.attempt for report in past).items():
        if n > 1:
            highest = max(report.resource for report in past if report.attempt == attempt)
            reported = f"{n} reports at or past its budget of {total:g}, up to {highest:g}"
            yield f"attempt {attempt} has {reported}"


def a_trial_that_is_over_has_a_final_report(trial: Trial, _: StudyTrials) -> Iterator[str]:
    if not trial.state.terminal or not trial.attempts:
        return
    has_trained = trial.resource > 0
    if (has_trained or trial.state is State.COMPLETE) and trial.resource not in trial.reports:
        yield f"it is {trial.state} at {trial.resource:g}, but has no report there"


def a_trial_has_a_result(trial: Trial, _: StudyTrials) -> Iterator[str]:
    if trial.state is State.COMPLETE and trial.value is None and trial.values is None:
        yield "it is complete, but has no value"
    if trial.state is State.FAILED and trial.error_kind is None and trial.attempts:
        yield "it is failed, but has no error"


def a_repeat_names_another_trial(trial: Trial, study: StudyTrials) -> Iterator[str]:
    source = trial.repeats
    if source is not None and (source == trial.number or source not in study.trials):
        yield f"it repeats trial {source}, which is not another trial of the study"


RULES: tuple[Rule, ...] = (
    attempts_are_numbered_from_1,
    only_a_running_trial_has_a_live_attempt,
    only_a_complete_trial_was_completed,
    the_last_attempt_leads_to_the_state,
    nothing_follows_an_attempt_that_ended_its_trial,
    an_attempt_with_an_outcome_has_an_end,
    a_trial_is_charged_what_its_attempts_took,
    no_report_lies_beyond_the_training,
    no_report_is_from_before_a_retry,
    no_attempt_goes_on_past_the_budget,
    a_trial_that_is_over_has_a_final_report,
    a_trial_has_a_result,
    a_repeat_names_another_trial,
)


def violations(connection: Connection, study_id: int | None = None) -> list[Violation]:
    """Everything that is wrong with one study, or all; of cells that cannot be read the first."""
    found: list[Violation] = []
    heads = select(STUDY.id, STUDY.name, STUDY.spec).order_by(STUDY.id)
    if study_id is not None:
        heads = heads.where(STUDY.id == study_id)
    for number, name, spec in connection.execute(heads).all():
        try:
            contents.records(connection, StudyRecord, STUDY.id == number)  # raises Damaged
            trials = contents.trials_since(connection, number, -1)
            study = StudyTrials(trials, budget_in(spec))
        except Damaged as damage:
            found.append(Violation(name, None, damage.what))
        else:
            found += _violations_in(name, study)
            found += _stale_ranks(connection, number, name, trials)
            found += _stray_versions(connection, number, name, trials)
    return found


def _stale_ranks(
    connection: Connection, study_id: int, name: str, trials: Mapping[int, Trial]
) -> Iterator[Violation]:
    ranks = select(schema.trials.c.number, schema.trials.c.violation, schema.trials.c.standing)
    for number, *kept in connection.execute(ranks.where(schema.trials.c.study_id == study_id)):
        right = list(contents.ranked_by(trials[number]))
        if kept != right:
            was, now = (f"violation {over:g}, standing {at}" for over, at in (kept, right))
            yield Violation(name, number, f"it is ranked by {was} in place of {now}")


def _stray_versions(
    connection: Connection, number: int, name: str, trials: Mapping[int, Trial]
) -> Iterator[Violation]:
    versions = [each.number for each in versions_of(connection, number)]
    if versions != list(range(1, len(versions) + 1)):
        yield Violation(name, None, f"its versions are {some(versions)}: some are missing")
    for trial in trials.values():
        if not 1 <= trial.version <= max([1, *versions]):
            what = f"it is of version {trial.version}, and there is none"
            yield Violation(name, trial.number, what)


def _violations_in(name: str, study: StudyTrials) -> Iterator[Violation]:
    numbers = list(study.trials)
    if numbers != list(range(len(numbers))):
        between = f"from {numbers[0]} to {numbers[-1]}"
        what = f"{len(numbers)} trials have numbers {between}: some are missing"
        yield Violation(name, None, what)
    for number, trial in study.trials.items():
        for rule in RULES:
            for what in rule(trial, study):
                yield Violation(name, number, what)
