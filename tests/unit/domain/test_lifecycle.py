"""Every legal move is made, and every other one is refused."""

import itertools
from pathlib import Path

import pytest

from hpsearch.domain.lifecycle import MOVES, IllegalMove, State, diagram, move

EVERY_PAIR = list(itertools.product(State, State))


@pytest.mark.parametrize(
    ("current", "to"), [pair for pair in EVERY_PAIR if pair[1] in MOVES[pair[0]]]
)
def test_a_legal_move_is_made(current: State, to: State) -> None:
    assert move(current, to) is to


@pytest.mark.parametrize(
    ("current", "to"), [pair for pair in EVERY_PAIR if pair[1] not in MOVES[pair[0]]]
)
def test_any_other_move_is_refused_with_the_trials_story(current: State, to: State) -> None:
    with pytest.raises(
        IllegalMove, match=f"{current.value} -> {to.value} is not a legal move; trial 7 at 3"
    ):
        move(current, to, "trial 7 at 3")


def test_exactly_three_states_are_terminal() -> None:
    assert {state for state in State if state.terminal} == {
        State.COMPLETE,
        State.PRUNED,
        State.FAILED,
    }


def test_the_diagram_shows_every_move() -> None:
    text = diagram()
    for state, moves in MOVES.items():
        for to, why in moves.items():
            assert f"{state.value} --> {to.value}: {why}" in text


def test_the_architecture_page_shows_the_diagram_of_the_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "architecture.md"
    assert diagram() in page.read_text(encoding="utf-8")
