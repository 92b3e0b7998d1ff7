"""Studies to ask: new ones, and those that go on."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from hpsearch.asking import written
from hpsearch.asking.study import AskedStudy
from hpsearch.asking.turn import Turn
from hpsearch.asking.turns import Turns
from hpsearch.asking.written import Written
from hpsearch.brain.reopening import reopen
from hpsearch.domain.facts import Role
from hpsearch.domain.records import Environment, StudyRecord, StudyState
from hpsearch.errors import StudyExists, StudyNotFound, UserError
from hpsearch.store import owners
from hpsearch.store.connecting.url import parse_url, refuse_in_memory
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.text.editing import with_budget
from hpsearch.wiring.creation import create_study, spec_of
from hpsearch.wiring.environment import environment
from hpsearch.wiring.warm_start import told_to


def create(url: str, spec: Written) -> AskedStudy:
    """Create a study to ask, or go on with the one that has this study file already; see
    `hpsearch.create`."""
    wanted = written.read(spec)
    store = _store_at(url, create=True)
    try:
        record = _found_or_new(store, wanted)
        if not record.spec or not written.is_same(wanted, spec_of(record)):
            raise StudyExists(
                f"study {record.name} is already in {store.display_url}, with another study file",
                f'go on with it as it is: hpsearch.resume(url, "{record.name}") - '
                "or give the new study another name",
            )
        return _opened(store, record, None)
    except BaseException:
        store.close()
        raise


def resume(url: str, name: str, budget: Mapping[str, float | str]) -> AskedStudy:
    """Go on with a study of the database; see `hpsearch.resume`."""
    store = _store_at(url, create=False)
    try:
        record = store.find_study(name)
        if not record.spec:
            raise UserError(f"study {name} was made through Optuna and has no study file to ask by")
        text = None
        if budget:
            text = record.spec = with_budget(record.spec, written.plain(budget, "budget"))
        return _opened(store, record, text)
    except BaseException:
        store.close()
        raise


def _store_at(url: str, *, create: bool) -> Store:
    """The database at a URL, which must outlive this process."""
    refuse_in_memory(parse_url(url))
    return Store.open(url, create=create)


def _found_or_new(store: Store, spec: StudySpec) -> StudyRecord:
    try:
        return store.find_study(spec.study)
    except StudyNotFound:
        told = told_to(store, spec)
    try:
        return create_study(store, spec, None, told=told).study
    except StudyExists:  # another process was faster
        return store.find_study(spec.study)


def _opened(store: Store, record: StudyRecord, text: str | None) -> AskedStudy:
    """A study to ask, which goes on where it was interrupted, or has another budget now.

    Args:
        store: The database.
        record: The study, with the new text if there is one.
        text: Its study file with another budget; None if it keeps the one it has.

    Raises:
        StudyHeld: A driver owns it.
    """
    turns = Turns(store, record)
    # Asks git and the packages for their versions: before the turn, in which others wait.
    runs_on = environment(turns.spec, f"asked on {platform.node()}")
    _release_if_dead(store, record.name)

    def go_on(turn: Turn) -> None:
        _go_on(turn, turns.spec, text, runs_on)

    turns.take(lambda turn: None, opens=go_on)
    return AskedStudy(turns)


def _go_on(turn: Turn, spec: StudySpec, text: str | None, runs_on: Environment) -> None:
    """Let a study go on that is not over for good."""
    history = turn.history
    study = history.study
    is_idle = len(turn.dead) == len(turn.beats)
    if turn.stop_requested and is_idle:
        turn.stop_requested = False
        turn.forgets_stop = True
    if text is not None:
        started = sum(trial.role is not Role.CONFIRM for trial in history.trials)
        trials = spec.budget.trials
        if trials is not None and trials < started:
            what = f"study {study.name} has already started {started} trials, more than {trials}"
            raise UserError(what, f"give a number above {started} for new trials")
        study.spec = text
        history.touch_study()
    may_go_on = study.state in (StudyState.INTERRUPTED, StudyState.FAILED)
    if study.state is StudyState.FINISHED and text is not None:
        may_go_on = True
    if may_go_on and not turn.stop_requested:
        reopen(history)
        study.state = StudyState.RUNNING
        study.reason = None
        study.ended = None
        history.touch_study()
    if study.state is StudyState.RUNNING:
        history.add_environment(runs_on)


def _release_if_dead(store: Store, name: str) -> None:
    """Free a study from a driver that was a process of this machine and has ended."""
    holder = store.holder(name)
    if holder is not None and owners.is_dead(holder.owner):
        store.release(holder)
