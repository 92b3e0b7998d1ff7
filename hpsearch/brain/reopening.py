"""A study that continues after its end: its waiting trials wait again, and failed ones may.

Trials that were pruned only because the study ended without them go back to where they were, those
at a rung if their checkpoint is still there. In a study that gave up, trials failed because of the
code, the data or the machines, which a resume assumes to be corrected: they take their turn again,
except where the configuration itself was the reason, and lost workers count against no trial. Those
that are asked for, one by one or all, run again in any study.

A trial that had failed begins anew, as what it was trained by may be another program now. What it
has spent and its attempts stay on record; its reports, and all that follows from them, go.
"""

from collections.abc import Mapping

from hpsearch.domain.facts import NEXT_HOUR, DecisionKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import MOVES, State
from hpsearch.domain.records import CONSTRAINT, IN_FULL, RETRIED, Decision, StudyState, Trial
from hpsearch.errors import UserError
from trials.contract import TRAINED_TO


def reopen(history: History, *, failed_too: bool = True) -> None:
    """Let trials of a study that finished or gave up wait again; no other study changes, and none
    that goes on for one trial alone. Failed ones wait only if `failed_too`."""
    study = history.study
    gave_up = study.state is StudyState.FAILED
    if not gave_up and study.state is not StudyState.FINISHED:
        return
    if any(trial.goes_on_alone for trial in history.trials):
        return
    if study.system_attrs.pop(NEXT_HOUR, None) is not None:
        history.touch_study()  # it is looked at anew before it ends for that again
    for trial in history.trials:
        if trial.system_attrs.get(IN_FULL):
            trial.system_attrs = {**trial.system_attrs, IN_FULL: False}
            history.touch(trial)
        to = _back_to(trial)
        if gave_up and (to is not None or trial.state is State.FAILED):
            trial.forgiven = len(trial.attempts)
            history.touch(trial)
        if to is not None:
            trial.left_as = trial.ended = None
            trial.state = MOVES.move(trial.state, to)
            history.touch(trial)
        elif gave_up and failed_too and _is_of_the_code(trial):
            _begin_again(history, trial)
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
    if not trial.role.of_search:
        is_repeat = trial.role is Role.CONFIRM
        does = f"repeats trial {trial.repeats}" if is_repeat else "tests changed code"
        raise UserError(f"trial {number} of {name} {does}, for which nothing is asked", others)
    return trial


def retry(history: History, since: Mapping[int, str], now: float) -> None:
    """Let failed trials wait for a slot again, by their numbers, each with what is known to have
    changed since it failed. One that another driver has retried meanwhile stays as it is."""
    for number, changed in since.items():
        trial = history.trials[number]
        if trial.state is State.FAILED:
            failure = f"attempt {len(trial.attempts)} failed ({trial.error_kind}"
            why = f"asked for; {failure}: {trial.error_text}), and since then {changed}"
            decision = Decision(number, DecisionKind.RETRY, why, trial.resource, [], now)
            history.add_decision(decision)
            _begin_again(history, trial)


def _begin_again(history: History, trial: Trial) -> None:
    trial.state = MOVES.move(trial.state, State.QUEUED)
    trial.ended = trial.error_kind = trial.error_text = None
    trial.value = trial.values = trial.rung = None
    trial.checkpoint = trial.checkpoint_resource = None
    trial.best_checkpoint = trial.checkpoint_bytes = None
    trial.resource = 0.0
    trial.findings = []
    kept = {key: value for key, value in trial.system_attrs.items() if not _is_of_reports(key)}
    trial.forgiven = len(trial.attempts)
    trial.system_attrs = {**kept, RETRIED: trial.forgiven}
    history.forget_reports(trial)


def _is_of_reports(attribute: str) -> bool:
    return attribute == TRAINED_TO or attribute.startswith(CONSTRAINT)


def _is_of_the_code(trial: Trial) -> bool:
    """True if a trial failed for another reason than its configuration."""
    kind = trial.error_kind
    return trial.state is State.FAILED and (kind is None or not kind.of_configuration)


def _back_to(trial: Trial) -> State | None:
    """The state in which a trial waits once its study continues; None if it has had its turn."""
    if trial.state is not State.PRUNED or trial.out_of_space:
        return None
    if trial.left_as is State.PAUSED and trial.checkpoint is None:
        return None
    return trial.left_as
