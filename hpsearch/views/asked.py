"""What was asked of a study, and what came of it, in words."""

from __future__ import annotations

from dataclasses import dataclass

from hpsearch.domain.facts import RequestKind
from hpsearch.domain.records import Request
from hpsearch.views.numbers import pairs


@dataclass(frozen=True)
class ToldRequest:
    """A request in words.

    Args:
        when: In seconds since the epoch.
        what: What was asked.
        origin: By whom.
        answer: What came of it.
        trial: The trial that it led to or changed; None if there is none.
    """

    when: float
    what: str
    origin: str
    answer: str
    trial: int | None


def told(request: Request) -> ToldRequest:
    """A request in words."""
    answer = "done"
    if request.refused is not None:
        answer = f"refused: {request.refused}"
    elif request.handled is None:
        answer = "waits for the study's driver"
    return ToldRequest(request.created, _what(request), request.origin, answer, request.trial)


def _what(request: Request) -> str:
    content = request.content
    match request.kind:
        case RequestKind.STOP:
            return f"stop trial {content.get('trial')}"
        case RequestKind.PROPOSE:
            params, why = content.get("params"), content.get("why")
            tried = pairs(params) if isinstance(params, dict) else "a configuration"
            return f"try {tried}" + (f" ({why})" if why else "")
        case RequestKind.BUDGET:
            return "raise " + ", ".join(f"{name} to {value}" for name, value in content.items())
