"""New and resumed studies to ask, and their study files."""

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from hpsearch.asking.session import AskingSession
from hpsearch.asking.study import AskedStudy
from hpsearch.asking.transaction import Transaction
from hpsearch.brain.reopening import reopen, retry
from hpsearch.domain.records import Environment, StudyRecord, StudyState
from hpsearch.errors import StudyExists, StudyNotFound, UserError
from hpsearch.running.creation.study import create_study, environment, spec_of
from hpsearch.running.creation.warm_start import earlier_studies
from hpsearch.running.study_run import retries
from hpsearch.running.study_run.ownership import release_if_dead
from hpsearch.running.study_run.versions import begin_due, sessions_of
from hpsearch.store.connecting.hints import suggesting_for
from hpsearch.store.connecting.url import parse_url, refuse_in_memory
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse, text_of
from hpsearch.study_file.text import with_budget
from trials.descriptions import yaml_source
from trials.descriptions.description import ASK

SpecSource = Mapping[str, Any] | str | os.PathLike[str]
"""A study file as users give it: its content as a mapping, its path, or its text."""


def read(spec: SpecSource) -> StudySpec:
    """Read a study file; without a task, it gets the one of asked trials. Relative paths start in
    its folder, or in the current one where it is not a file. Raises UserError, or SpecError with
    all mistakes."""
    if isinstance(spec, Mapping):
        return parse(_with_task(_dumped(spec)), base=Path.cwd(), name="spec")
    if isinstance(spec, str) and "\n" in spec:
        return parse(_with_task(spec), base=Path.cwd(), name="spec")
    if not isinstance(spec, str | os.PathLike):
        what = f"spec is of type {type(spec).__name__}"
        raise UserError(what, "give a mapping, the path of a study file, or its text")
    path = Path(spec)
    return parse(_with_task(text_of(path)), base=path.resolve().parent, name=path.name)


def is_same(one: StudySpec, other: StudySpec) -> bool:
    """True if two study files say the same, whatever their text and folder."""
    elsewhere = {"text": "", "base": Path()}
    return one.model_copy(update=elsewhere) == other.model_copy(update=elsewhere)


def _with_task(text: str) -> str:
    value = yaml_source.read(text).value
    if not isinstance(value, dict) or "task" in value:
        return text
    return f"{text.rstrip()}\ntask: {{kind: {ASK.kind}}}\n"


def _dumped(spec: Mapping[str, Any]) -> str:
    with _only_what_files_have("spec"):
        text: str = yaml.safe_dump(plain(spec), sort_keys=False, allow_unicode=True)
    return text


@contextmanager
def _only_what_files_have(what: str) -> Iterator[None]:
    """Raise UserError for an object that YAML does not have."""
    try:
        yield
    except yaml.representer.RepresenterError as error:
        problem = f"{what} holds a value that a study file does not have: {error.args[-1]!r:.100}"
        hint = "a study file has mappings, lists, numbers, text, true, false and null"
        raise UserError(problem, hint) from None
    except ValueError as error:  # a whole number of thousands of digits
        raise UserError(f"{what} cannot be written down: {error}") from None


def plain(value: Any) -> Any:
    """A value as YAML has it: tuples as lists, any mapping as a dict, numbers as Python's."""
    if isinstance(value, Mapping):
        return {plain(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, str):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value


def create(url: str, spec: SpecSource) -> AskedStudy:
    """Create a study to ask, or resume the one with this study file; see `hpsearch.create`."""
    wanted = read(spec)
    with _closed_if_it_fails(url, create=True) as store:
        record = _found_or_new(store, wanted)
        if not is_same(wanted, spec_of(record)):
            raise StudyExists(
                f"study {record.name} is already in {store.display_url}, with another study file",
                f'go on with it as it is: hpsearch.resume(url, "{record.name}") - '
                "or give the new study another name",
            )
        return _opened(store, record, None)


def resume(
    url: str,
    name: str,
    budget: Mapping[str, float | str],
    which: str | None = None,
    *,
    changed: bool = False,
) -> AskedStudy:
    """Resume a study of the database; see `hpsearch.resume`."""
    with _closed_if_it_fails(url, create=False) as store:
        record = store.find_study(name)
        text = None
        if budget:
            with _only_what_files_have("the budget"):
                text = record.spec = with_budget(record.spec, plain(budget))
        return _opened(store, record, text, which, changed=changed)


@contextmanager
def _closed_if_it_fails(url: str, *, create: bool) -> Iterator[Store]:
    refuse_in_memory(parse_url(url))
    with suggesting_for(url):
        store = Store.open(url, create=create)
        try:
            yield store
        except BaseException:
            store.close()
            raise


def _found_or_new(store: Store, spec: StudySpec) -> StudyRecord:
    try:
        return store.find_study(spec.study)
    except StudyNotFound:
        earlier = earlier_studies(store, spec)
    try:
        return create_study(store, spec, None, earlier=earlier).study
    except StudyExists:  # another process was faster
        return store.find_study(spec.study)


def _opened(
    store: Store,
    record: StudyRecord,
    text: str | None,
    which: str | None = None,
    *,
    changed: bool = False,
) -> AskedStudy:
    session = AskingSession(store, record)
    # Asks git and the packages for their versions: before the transaction, in which others wait.
    runs_on = environment(session.spec, f"asked on {platform.node()}")
    release_if_dead(store, record.name)
    failed: list[int] = []
    if which is not None:
        sessions = sessions_of(store, record.name)
        with store.reading() as connection:
            failed = retries.chosen(connection, store.load(record.name), which)

    def go_on(transaction: Transaction) -> None:
        trials = [transaction.history.trials[number] for number in failed]
        since = retries.since_failure(sessions, trials, runs_on) if failed else {}
        _go_on(transaction, session.spec, text, runs_on, since)
        if changed:
            said = ["its program has changed"]
            begin_due(transaction.history, (), None, transaction.now, said)

    session.take(lambda transaction: None, opens=go_on)
    return AskedStudy(session)


def _go_on(
    transaction: Transaction,
    spec: StudySpec,
    text: str | None,
    runs_on: Environment,
    since: Mapping[int, str],
) -> None:
    history = transaction.history
    study = history.study
    is_idle = len(transaction.dead) == len(transaction.beats)
    if transaction.stop_requested and is_idle:
        transaction.stop_requested = False
        transaction.forgets_stop = True
    if text is not None:
        started = history.searched
        trials = spec.budget.trials
        if trials is not None and trials < started:
            what = f"study {study.name} has already started {started} trials, more than {trials}"
            raise UserError(what, f"give a number above {started} for new trials")
        study.spec = text
        history.touch_study()
    if since:
        retries.refuse_used_up(spec, history)
        retry(history, since, transaction.now)
    may_go_on = study.state in (StudyState.INTERRUPTED, StudyState.FAILED)
    if study.state is StudyState.FINISHED and (text is not None or since):
        may_go_on = True
    if may_go_on and not transaction.stop_requested:
        reopen(history, failed_too=not since)
        study.state = StudyState.RUNNING
        study.reason = study.interruption = study.ended = None
        history.touch_study()
    if study.state is StudyState.RUNNING:
        history.add_environment(runs_on)
