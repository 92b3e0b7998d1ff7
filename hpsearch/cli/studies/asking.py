"""Requests to a study that a driver owns: stop one of its trials, try a configuration, raise its
budget."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from hpsearch.cli.output import note
from hpsearch.cli.studies.enqueue import configurations
from hpsearch.domain.facts import RequestKind
from hpsearch.domain.records import Request, StudyState
from hpsearch.driver.journal import RENEW_S
from hpsearch.errors import UserError
from hpsearch.store.reading.queries import find_study, trial_detail
from hpsearch.store.store import Store
from hpsearch.study_file.space import is_open
from hpsearch.wiring.creation import spec_of

WAIT_S = 3 * RENEW_S
"""How long an answer is waited for: a driver looks for requests as often as it renews its lease."""


def stop_trial(name: str, number: int, storage: str) -> None:
    """Ask for the end of one trial.

    Raises:
        UserError: It is refused.
    """
    request = _request(RequestKind.STOP, {"trial": number})
    _ask(name, request, storage, f"trial {number} of {name} is stopped")


def propose(name: str, text: str, like: int | None, why: str, storage: str) -> None:
    """Ask for a configuration to be tried next.

    Args:
        name: The study.
        text: Its parameters, such as ``learning_rate=1e-4``; those that are missing are drawn, or
            are those of another trial.
        like: The trial whose parameters it starts from; None for none.
        why: For the record; may be empty.
        storage: The database's URL.

    Raises:
        UserError: The configuration is outside the space, or it is refused.
    """
    with closing(Store.open(storage, create=False)) as store:
        spec = spec_of(store.find_study(name))
        params = _params_of(store, name, like)
    if text:
        params |= configurations([text], spec.space, is_open=is_open(spec.task))[0]
    elif like is None:
        raise UserError("there is nothing to try", 'for example: hpsearch enqueue NAME "lr=1e-4"')
    request = _request(RequestKind.PROPOSE, {"params": params, "why": why})
    _ask(name, request, storage, f"study {name} tries it next, as trial")


def raise_budget(name: str, limits: Mapping[str, float | str], storage: str) -> None:
    """Ask for higher limits.

    Raises:
        UserError: None is given, or they are refused.
    """
    if not limits:
        raise UserError("no limit is given", "for example: hpsearch budget NAME --trials 80")
    written = ", ".join(f"{limit} {value}" for limit, value in limits.items())
    request = _request(RequestKind.BUDGET, dict(limits))
    _ask(name, request, storage, f"study {name} goes on with {written}")


def _params_of(store: Store, name: str, number: int | None) -> dict[str, Any]:
    if number is None:
        return {}
    with store.reading() as connection:
        found = trial_detail(connection, find_study(connection, name), number)
    return dict(found.trial.params)


def _request(kind: RequestKind, content: dict[str, Any]) -> Request:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # nobody of that number is known here
        user = "somebody"
    origin = f"{user}@{socket.gethostname()}"
    return Request(0, kind, content, origin, time.time())


def _ask(name: str, request: Request, storage: str, done: str) -> None:
    """Write a request, and tell what the study's driver answers.

    Raises:
        UserError: It is refused, or the study has ended.
    """
    with closing(Store.open(storage, create=False)) as store:
        with store.reading() as connection:
            study = find_study(connection, name)
        driven = study.driver is not None
        if not driven and study.state is StudyState.FINISHED:
            message = f"study {name} has ended: {study.reason}"
            raise UserError(message, f"to continue it: hpsearch resume {name} --trials N")
        number = store.ask(name, request)
        if not driven:
            note(f"study {name} has no driver: the next one sees to it (hpsearch resume {name})")
            return
        answer = _answer(store, number)
    if answer is None:
        note(f"the driver of {name} has not answered yet; it will see to it")
        return
    if answer.refused is not None:
        raise UserError(f"study {name} refuses: {answer.refused}")
    is_new = request.kind is RequestKind.PROPOSE
    note(f"{done} {answer.trial}" if is_new else done)


def _answer(store: Store, number: int) -> Request | None:
    """What came of a request; None if its driver does not answer in time."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        request = store.answer_to(number)
        if request.handled is not None:
            return request
        time.sleep(0.2)
    return None
