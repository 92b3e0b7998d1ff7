"""Every legal move is made, and every other one is refused."""

import itertools
from pathlib import Path

import pytest

from hpsearch.domain import lifecycle, phase
from hpsearch.domain.lifecycle import State
from hpsearch.domain.moves import IllegalMove
from hpsearch.domain.phase import Phase

TABLES = [
    pytest.param(lifecycle.MOVES, State, id="trial"),
    pytest.param(phase.MOVES, Phase, id="study"),
]


@pytest.mark.parametrize(("table", "states"), TABLES)
def test_legal_moves_are_made_and_others_refused_with_the_story(table, states):
    for current, to in itertools.product(states, states):
        if to in table.moves[current]:
            assert table.move(current, to) is to
            continue
        text = f"{current.value} -> {to.value} is not a legal move; trial 7 at 3"
        with pytest.raises(IllegalMove, match=text):
            table.move(current, to, "trial 7 at 3")


def test_three_states_of_a_trial_are_terminal_and_in_two_phases_a_study_leaves():
    assert [state for state in State if state.terminal] == ["complete", "pruned", "failed"]
    assert [each for each in Phase if each.winds_down] == ["ending", "interrupted"]


@pytest.mark.parametrize(("table", "states"), TABLES)
def test_the_diagram_shows_every_move_and_stands_on_the_architecture_page(table, states):
    text = table.diagram()
    for state, to in itertools.product(states, states):
        if to in table.moves[state]:
            assert f"{state.value} --> {to.value}: {table.moves[state][to]}" in text
    page = Path(__file__).parents[3] / "docs" / "architecture.md"
    assert text in page.read_text(encoding="utf-8")
