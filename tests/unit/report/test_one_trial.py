"""A trial as Python gives it and a notebook shows it."""

from __future__ import annotations

from contextlib import closing
from html.parser import HTMLParser

import pytest

import hpsearch
from hpsearch.domain.facts import ErrorKind, Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.errors import UserError
from hpsearch.store.store import Store

HOSTILE = "<script>alert(1)</script>|\x1b[31m\" onload='x"
SPEC = """
study: flowers
objective: {metric: "<b>accuracy</b>", direction: maximize}
"""


class _Elements(HTMLParser):
    """The names of the elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def flowers(sqlite_url: str) -> str:
    """The URL of a study with hostile names."""
    trials = [
        Trial(0, State.COMPLETE, {HOSTILE: HOSTILE}, value=0.9, resource=9.0),
        Trial(1, State.COMPLETE, {"x": 1}, value=0.91, role=Role.CONFIRM, repeats=0),
        Trial(2, State.COMPLETE, {"x": 1}, value=0.87, role=Role.CONFIRM, repeats=0),
        Trial(3, State.PAUSED, {"x": 2}, value=0.5, resource=3.0, expected=0.7),
        Trial(4, State.FAILED, {"x": 3}, error_kind=ErrorKind.ERROR, error_text=HOSTILE),
        Trial(5, State.COMPLETE, {"x": 4}, value=0.6, resource=9.0, continues=3, continues_at=3.0),
        Trial(6, State.QUEUED, {"x": 5}),
    ]
    trials[3].expected_deviation = 0.01
    with closing(Store.open(sqlite_url)) as store:
        study = store.create_study(StudyRecord(0, "flowers", SPEC, directions=("maximize",)))
        store.commit(study.id, Changes(trials=trials))
        store.create_study(StudyRecord(0, "trees", SPEC, directions=("maximize",)))
    return sqlite_url


def test_the_best_trial_shows_its_parameters_its_value_and_how_sure_it_is(flowers: str) -> None:
    with hpsearch.open(flowers, "flowers") as study:
        best = study.trial()
    assert (best.number, best.state, best.value, best.resource) == (0, "complete", 0.9, 9.0)
    assert best.confirmed is not None
    assert best.confirmed.runs == 2
    assert repr(best) == "<trial 0 of flowers, complete: <b>accuracy</b> 0.9>"
    page = _Elements(best._repr_html_())
    assert "Confirmed (90%): 0.89 [0.7637 to 1] (2 runs)." in page.text
    assert "trial 0, complete: <b>accuracy</b> 0.9" in page.text


def test_what_others_wrote_stays_text(flowers: str) -> None:
    with hpsearch.open(flowers, "flowers") as study:
        pages = [study.trial(number)._repr_html_() for number in range(7)]
        pages.append(study._repr_html_())
    ours = {"div", "p", "strong", "ul", "li", "table", "caption", "thead", "tbody", "tr", "th"}
    for page in map(_Elements, pages):
        assert page.names <= ours | {"td"}
        assert page.attributes <= {"scope"}
        assert "\x1b" not in page.text
    assert "<script>alert(1)</script>" in _Elements(pages[0]).text
    assert "<script>alert(1)</script>" in _Elements(pages[4]).text


def test_what_is_not_sure_is_said(flowers: str) -> None:
    with hpsearch.open(flowers, "flowers") as study:
        said = {number: _Elements(study.trial(number)._repr_html_()).text for number in range(7)}
    assert "Expected of it in full (90%): 0.7 ± 0.016." in said[3]
    assert "It has not been trained in full: it is paused." in said[3]
    assert "It failed: error: " in said[4]
    assert "It continues trial 3 from 3, under other parameters." in said[5]
    assert "is not repeated with other seeds" in said[5]
    assert "it is queued" in said[6]


def test_what_is_not_there_is_refused(flowers: str) -> None:
    with hpsearch.open(flowers, "flowers") as study, pytest.raises(UserError, match="no trial 99"):
        study.trial(99)
    with hpsearch.open(flowers, "trees") as study, pytest.raises(UserError, match="a value yet"):
        study.trial()
