"""What was asked of a study while it ran, as people read it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from hpsearch.domain.facts import DecisionKind, RequestKind
from hpsearch.domain.records import Decision, Request
from hpsearch.views.terminal.status import MOST_SHOWN, asked
from hpsearch.views.words.requests import latest, outcome, wish

PROPOSE, BUDGET = RequestKind.PROPOSE, RequestKind.BUDGET


def request(kind: RequestKind, content: Any, **answer: Any) -> Request:
    return Request(1, kind, content, "ann@desk", created=5.0, **answer)


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        (RequestKind.STOP, {"trial": 3}, "stop trial 3"),
        (RequestKind.INTERRUPT, {}, "stop the study"),
        (BUDGET, {"trials": 80, "wall_clock": "4h"}, "raise trials to 80, wall_clock to 4h"),
        (PROPOSE, {"params": {"x": 0.5}, "why": "it was good"}, "try x=0.5 (it was good)"),
        (PROPOSE, {"params": None}, "try a configuration"),
        (PROPOSE, {}, "try a configuration"),
    ],
)
def test_what_is_asked_is_said_in_words(kind: RequestKind, content: Any, said: str) -> None:
    assert wish(request(kind, content)) == said


def test_the_answer_is_said_in_words() -> None:
    assert outcome(request(BUDGET, {})) == "waits for the driver"
    assert outcome(request(BUDGET, {}, handled=6.0)) == "done"
    assert outcome(request(PROPOSE, {}, handled=6.0, trial=9)) == "trial 9"
    assert outcome(request(BUDGET, {}, handled=6.0, refused="too low")) == "refused: too low"


def test_decisions_of_the_study_stand_among_those_of_its_trials() -> None:
    decisions = [Decision(3, DecisionKind.PAUSE, "others are ahead", created=at) for at in (1, 9)]
    requests = [
        request(BUDGET, {"trials": 80}, handled=5.0),
        request(BUDGET, {"trials": 90}),
        request(PROPOSE, {"params": {"x": 1}}, handled=6.0, trial=9),
        request(PROPOSE, {"params": {"x": 2}}, handled=7.0, refused="no"),
    ]
    assert latest(decisions, requests) == [
        "trial 3 pause: others are ahead",
        "ann@desk asked to raise trials to 80: done",
        "ann@desk asked to try x=2: refused: no",
        "trial 3 pause: others are ahead",
    ]


def test_the_table_has_the_latest_and_says_how_many_came_before() -> None:
    requests = [request(BUDGET, {"trials": 10 + n}, handled=6.0) for n in range(MOST_SHOWN + 2)]
    console = Console(file=io.StringIO(), width=200)
    console.print(asked(requests, None))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "asked while it ran (and 2 before)" in said
    assert "raise trials to 11" not in said
    assert "raise trials to 16" in said
