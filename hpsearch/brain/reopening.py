"""A study that continues after its end: its waiting trials wait again.

Trials that were pruned only because the study ended without them go back to where they were, those
at a rung if their checkpoint is still there. In a study that gave up, trials failed because of the
code, the data or the machines, which a resume assumes to be corrected: they take their turn again,
except where the configuration itself was the reason, and lost workers count against no trial.
"""

from collections.abc import Sequence

from hpsearch.domain.facts import DecisionKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import MOVES, State
from hpsearch.domain.records import IN_FULL, Decision, StudyState, Trial
from hpsearch.errors import UserError

MOST_NAMED = 10  # failed trials that an error names


def reopen(history: History) -> None:
    """Let trials of a study that finished or gave up wait again; no other study changes, and none
    that goes on for one trial alone."""
    study = history.study
    gave_up = study.state is StudyState.FAILED
    if not gave_up and study.state is not StudyState.FINISHED:
        return
    if any(trial.goes_on_alone for trial in history.trials):
        return
    for trial in history.trials:
        if trial.system_attrs.get(IN_FULL):
            trial.system_attrs = {**trial.system_attrs, IN_FULL: False}
            history.touch(trial)
        to = _back_to(trial, gave_up)
        if gave_up and (to is not None or trial.state is State.FAILED):
            trial.forgiven = len(trial.attempts)
            history.touch(trial)
        if to is not None:
            trial.left_as = None
            trial.state = MOVES.move(trial.state, to)
            trial.ended = None
            trial.error_kind = None
            trial.error_text = None
            history.touch(trial)
    if gave_up and study.confirmation is not None:
        study.confirmation = None
        history.touch_study()


def train_in_full(history: History, number: int, *, has_checkpoint: bool) -> None:
    """Let a trial train to its end without being judged; before `reopen`. Raises UserError."""
    trial = to_finish(history, number)
    if trial.state in (State.PAUSED, State.PRUNED):
        trial.state = MOVES.move(trial.state, State.QUEUED)
        trial.left_as = trial.ended = None
    if not has_checkpoint:
        trial.checkpoint = trial.checkpoint_resource = None
    alone = history.study.state is StudyState.FINISHED
    trial.system_attrs = {**trial.system_attrs, IN_FULL: alone}
    history.touch(trial)


def to_finish(history: History, number: int) -> Trial:
    """The trial with a number. Raises UserError if there is none, or it cannot go on."""
    name, known = history.study.name, len(history.trials)
    others = f"see those that can go on: hpsearch trials {name} --where \"state = 'pruned'\""
    if not 0 <= number < known:
        has = f"it has trials 0 to {known - 1}" if known else "it has none yet"
        raise UserError(f"study {name} has no trial {number}", has)
    trial = history.trials[number]
    if trial.state is State.COMPLETE:
        raise UserError(f"trial {number} of {name} is complete already", others)
    if trial.state is State.FAILED:
        why = f"trial {number} of {name} failed ({trial.error_kind}: {trial.error_text})"
        raise UserError(why, others)
    if trial.role is Role.CONFIRM:
        why = f"trial {number} of {name} repeats trial {trial.repeats}, for which nothing is asked"
        raise UserError(why, others)
    return trial


def failed_trials(history: History, which: str) -> list[int]:
    """The failed trials that ``3,5`` or ``failed`` names. Raises UserError for any other."""
    name = history.study.name
    failed = [trial.number for trial in history.trials if trial.state is State.FAILED]
    if which == State.FAILED.value and not failed:
        raise UserError(f"no trial of {name} has failed", "leave --retry out")
    if which == State.FAILED.value:
        return failed
    words = [word.strip() for word in which.split(",")]
    for word in words:
        if not word.isdecimal():
            raise UserError(f"--retry: {word!r} is not a number", "for example: --retry 3,5")
        if int(word) not in failed:
            some = ", ".join(map(str, failed[:MOST_NAMED])) or "none"
            raise UserError(f"trial {word} of {name} has not failed", f"failed: {some}")
    return [int(word) for word in words]


def retry(history: History, numbers: Sequence[int], now: float) -> None:
    """Let failed trials wait for a slot again; what they have spent stays charged."""
    for number in numbers:
        trial = history.trials[number]
        if trial.state is not State.FAILED:
            continue
        why = f"asked for; it had failed ({trial.error_kind}: {trial.error_text})"
        decision = Decision(number, DecisionKind.RETRY, why, trial.resource, [], now)
        history.add_decision(decision)
        trial.state = MOVES.move(trial.state, State.QUEUED)
        trial.ended = trial.error_kind = trial.error_text = None
        trial.forgiven = len(trial.attempts)
        history.touch(trial)


def _back_to(trial: Trial, gave_up: bool) -> State | None:
    """The state in which a trial waits once its study continues; None if it has had its turn."""
    if trial.state is State.FAILED and gave_up:
        kind = trial.error_kind
        return None if kind is not None and kind.of_configuration else State.QUEUED
    if trial.state is not State.PRUNED:
        return None
    if trial.left_as is State.PAUSED and trial.checkpoint is None:
        return None
    return trial.left_as
