"""Failed trials that are to run again: which, what is left for them, and what was mended since."""

import re
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from hpsearch.brain.budget.ledger import Spending
from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Environment, Trial
from hpsearch.errors import UserError
from hpsearch.store.reading.attempts import changes, latest_before
from hpsearch.store.reading.queries import compiled_for, find_study, rows_of, trials_of
from hpsearch.study_file.models import StudySpec
from trials.settings import some

NUMBERS = re.compile(r"\d+(\s*,\s*\d+)*")


def chosen(connection: Connection, history: History, which: str) -> list[int]:
    """The failed trials that are meant by ``failed``, by numbers such as ``3,7``, or by a filter as
    of `hpsearch trials --where`. Raises UserError if a number is of another trial, or none is
    meant."""
    name, which = history.study.name, which.strip()
    if NUMBERS.fullmatch(which):
        numbers = sorted({int(word) for word in which.split(",")})
        for number in numbers:
            _refuse_unfailed(history, number)
        return numbers
    ended = (trial for trial in history.trials if trial.state is State.FAILED)
    failed = [trial.number for trial in ended if trial.role is not Role.REVISION]
    if not failed:
        raise UserError(f"no trial of {name} has failed", "go on without --retry")
    if which == State.FAILED.value:
        return failed
    study = find_study(connection, name)
    selected = trials_of(study).where(compiled_for(connection, study, which, "--retry"))
    meant = {row.number for row in rows_of(connection, selected)}
    if not meant.intersection(failed):
        hint = f"those that failed: {some(failed)}"
        raise UserError(f"--retry '{which}' selects no trial of {name} that failed", hint)
    return [number for number in failed if number in meant]


def _refuse_unfailed(history: History, number: int) -> None:
    name, known = history.study.name, len(history.trials)
    if number >= known:
        has = f"it has trials 0 to {known - 1}" if known else "it has none yet"
        raise UserError(f"study {name} has no trial {number}", has)
    if history.trials[number].role is Role.REVISION:
        raise UserError(f"trial {number} of {name} tests changed code", "ask for the change anew")
    state = history.trials[number].state
    hints = {
        State.COMPLETE: f"train its configuration anew: hpsearch train {name} --trial {number}",
        State.PRUNED: f"train it to its end: hpsearch resume {name} --finish {number}",
        State.QUEUED: f"it goes on by itself: hpsearch resume {name}",
    }
    hints |= {State.PAUSED: hints[State.PRUNED], State.RUNNING: hints[State.QUEUED]}
    if state is not State.FAILED:
        what = f"trial {number} of {name} has not failed: it is {state.value}"
        raise UserError(what, hints[state])


def refuse_used_up(spec: StudySpec, history: History) -> None:
    """Raise UserError if nothing is left of a study's compute time, money or time."""
    spending, study = Spending(spec.budget, history), history.study
    spending.time.begin(0.0)
    cost, unspent = spec.budget.cost, spending.ledger.unspent(None)
    if spending.time.is_used(0.0):
        limit = "wall-clock"
    elif unspent is None or unspent > 0:
        return
    else:
        limit = "gpu-hours" if cost is None or spending.ledger.paid < cost else "cost"
    raise UserError(
        f"study {study.name} has used up its limit on {limit}, so no trial can run again",
        f"raise it at the same time: --{limit} N, or in Python {limit.replace('-', '_')}=N",
    )


def refuse_idle(history: History, before: Mapping[int, int]) -> None:
    """Raise UserError if a trial did not run again; `before` has the numbers of attempts."""
    idle = [each for each, had in before.items() if len(history.trials[each].attempts) == had]
    if idle:
        what = f"{_named(idle)} did not run again: {history.study.reason}"
        how = f"hpsearch resume {history.study.name} with --gpu-hours, --cost or --wall-clock"
        raise UserError(what, f"raise the limit: {how}")


def since_failure(
    sessions: Sequence[Environment], trials: Sequence[Trial], runs_on: Environment
) -> dict[int, str]:
    """By the number of a failed trial, what is known to have changed since it ran."""
    found = {}
    for trial in trials:
        ran_on = latest_before(sessions, trial.attempts[-1].started) if trial.attempts else None
        changed = [] if ran_on is None else changes(ran_on, runs_on)
        found[trial.number] = "; ".join(changed) or "nothing is known to have changed"
    return found


def in_words(since: Mapping[int, str]) -> list[str]:
    """A line for all trials since whose failure the same has changed."""
    alike: dict[str, list[int]] = {}
    for number, changed in since.items():
        alike.setdefault(changed, []).append(number)
    return [f"since {_named(numbers)} failed: {what}" for what, numbers in alike.items()]


def _named(numbers: Sequence[int]) -> str:
    return f"trial{'' if len(numbers) == 1 else 's'} {some(numbers)}"
