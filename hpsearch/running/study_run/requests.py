"""Requests to a study that runs elsewhere, and their answers."""

import time
from typing import Any

from hpsearch.domain.facts import RequestKind
from hpsearch.domain.records import Request, StudyState
from hpsearch.errors import UserError
from hpsearch.running.driver.journal import RENEW_S
from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store

WAIT_S = 3 * RENEW_S
"""How long an answer is waited for: a driver hears of requests as often as it renews its lease."""

LOOK_S = 0.2  # the time between two looks for an answer


def ask(
    store: Store, name: str, kind: RequestKind, content: dict[str, Any], origin: str
) -> tuple[Request, bool]:
    """Ask something of a study, and wait a while for the answer. `content` is as `Request` says,
    `origin` the name of the asker for people.

    Returns the request, with its answer if there is one by now, and whether anybody drives the
    study: without a driver it waits for the next one. Raises StudyNotFound if no study has this
    name, and UserError if the study refuses or has ended."""
    number, is_driven = send(store, name, kind, content, origin)
    answer = _answer(store, number) if is_driven else store.find_request(number)
    if answer.refused is not None:
        raise UserError(f"study {name} refuses: {answer.refused}")
    return answer, is_driven


def send(
    store: Store, name: str, kind: RequestKind, content: dict[str, Any], origin: str
) -> tuple[int, bool]:
    """As `ask`, without waiting. Returns the request's id, and whether anybody drives it."""
    with store.reading() as connection:
        study = find_study(connection, name)
    is_driven = study.driver is not None
    if not is_driven and study.state is StudyState.FINISHED and kind is not RequestKind.REVISE:
        message = f"study {name} has ended: {study.reason}"
        raise UserError(message, f"to continue it: hpsearch resume {name} --trials N")
    return store.add_request(name, Request(0, kind, content, origin, time.time())), is_driven


def _answer(store: Store, number: int) -> Request:
    until = time.monotonic() + WAIT_S
    while True:
        request = store.find_request(number)
        if request.handled is not None or time.monotonic() > until:
            return request
        time.sleep(LOOK_S)
