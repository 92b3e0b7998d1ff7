"""The requests to a study while it ran, in words.

A study's own decisions are among that: who raised its budget, who stopped it, and what it refused.
Those about trials are also with the trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from hpsearch.domain.facts import RequestKind
from hpsearch.domain.numbers import cell, pairs
from hpsearch.domain.records import Decision, Request


def wish(request: Request) -> str:
    """A request, in words: ``raise trials to 80``, ``try dropout=0.2``."""
    content: Mapping[str, Any] = request.content
    match request.kind:
        case RequestKind.INTERRUPT:
            return "stop the study"
        case RequestKind.STOP:
            return f"stop trial {content.get('trial')}"
        case RequestKind.BUDGET:
            limits = [f"{name} to {cell(value)}" for name, value in content.items()]
            return f"raise {', '.join(limits)}"
    params = content.get("params")
    told = pairs(params) if isinstance(params, dict) and params else "a configuration"
    why = f" ({content['why']})" if content.get("why") else ""
    return f"try {told}{why}"


def outcome(request: Request) -> str:
    """The outcome of a request, in words."""
    if request.refused is not None:
        return f"refused: {request.refused}"
    if request.handled is None:
        return "waits for the driver"
    if request.kind is RequestKind.PROPOSE:
        return f"trial {request.trial}"
    return "done"


def is_of_study(request: Request) -> bool:
    """True if it is about the study as a whole, or was refused: no trial has a decision of it."""
    about_all = request.kind in (RequestKind.BUDGET, RequestKind.INTERRUPT)
    return about_all or request.refused is not None


def told(request: Request) -> str:
    """A request and its answer in a line."""
    return f"{request.origin} asked to {wish(request)}: {outcome(request)}"


def decided(decision: Decision) -> str:
    """``trial 3 pause: 2 of 7 go on from 3``"""
    return f"trial {decision.trial} {decision.kind.value}: {decision.why}"


def latest(decisions: Iterable[Decision], requests: Iterable[Request]) -> list[str]:
    """Decisions about trials and about the study, in words, the newest last."""
    lines = [(each.created, decided(each)) for each in decisions]
    for each in requests:
        if each.handled is not None and is_of_study(each):
            lines.append((each.handled, told(each)))
    return [line for _, line in sorted(lines, key=lambda line: line[0])]


def as_plain(request: Request) -> dict[str, Any]:
    """A request as plain values, with what it asks in words."""
    plain = {**asdict(request), "kind": request.kind.value}
    return {**plain, "asked": wish(request), "answer": outcome(request)}
