"""Requests to a study that a driver owns: stop one of its trials, try a configuration, raise its
budget. A request that is refused raises UserError."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from hpsearch.cli.options import Proposal
from hpsearch.cli.output import note
from hpsearch.creation.study import spec_of
from hpsearch.domain.facts import RequestKind
from hpsearch.errors import UserError
from hpsearch.store.reading.queries import find_study, trial_detail
from hpsearch.store.store import Store
from hpsearch.study_file.space import contains
from hpsearch.study_file.text.configurations import parameters_of
from hpsearch.study_run.requests import ask


def stop_trial(name: str, number: int, storage: str) -> None:
    """Ask for the end of one trial."""
    done = f"trial {number} of {name} is stopped"
    with closing(Store.open(storage, create=False)) as store:
        _ask(store, name, RequestKind.STOP, {"trial": number}, done)


def propose(name: str, proposal: Proposal, storage: str) -> None:
    """Ask for a configuration to be tried next."""
    text, like = proposal.configuration, proposal.like
    if not text and like is None:
        example = 'for example: hpsearch enqueue NAME "lr=1e-4"'
        raise UserError("there is nothing to try", example)
    with closing(Store.open(storage, create=False)) as store:
        spec = spec_of(store.find_study(name))
        params = {} if like is None else _params_of(store, name, like)
        if text:
            params |= parameters_of(text)
        problems = contains(spec, params)
        if problems:
            raise UserError("; ".join(problems))
        content = {"params": params, "why": proposal.why}
        done = f"study {name} tries it next, as trial"
        _ask(store, name, RequestKind.PROPOSE, content, done)


def raise_budget(store: Store, name: str, limits: Mapping[str, float | str]) -> None:
    """Ask a study that runs for higher limits."""
    written = ", ".join(f"{limit} {value}" for limit, value in limits.items())
    _ask(store, name, RequestKind.BUDGET, dict(limits), f"study {name} goes on with {written}")


def _params_of(store: Store, name: str, number: int) -> dict[str, Any]:
    with store.reading() as connection:
        found = trial_detail(connection, find_study(connection, name), number)
    return dict(found.trial.params)


def _ask(store: Store, name: str, kind: RequestKind, content: dict[str, Any], done: str) -> None:
    """Ask something of a study, and print its driver's reply."""
    reply, is_driven = ask(store, name, kind, content, origin())
    if not is_driven:
        note(f"study {name} has no driver: the next one sees to it (hpsearch resume {name})")
    elif reply.handled is None:
        note(f"the driver of {name} has not answered yet; it will see to it")
    elif kind is RequestKind.PROPOSE:
        note(f"{done} {reply.trial}")
    else:
        note(done)


def origin() -> str:
    """The user and the machine that ask."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # nobody of that number is known here
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
