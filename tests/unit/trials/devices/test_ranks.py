"""The ranks of a trial: their places, and what rank 0 tells the others."""

import os

import pytest
from torch import distributed

from trials.contract import TrialStopped
from trials.devices.ranks import ConnectedRanks, Meeting, Place, connect, places, serve


@pytest.fixture
def two() -> tuple[ConnectedRanks, ConnectedRanks]:
    """Rank 0 and rank 1."""
    store = serve("127.0.0.1")
    meeting = Meeting("127.0.0.1", store.port)
    first, second = places(["here", "here"])
    other = connect(meeting)
    return ConnectedRanks(first, meeting, store), ConnectedRanks(second, meeting, other)


def test_the_ranks_of_a_node_follow_each_other() -> None:
    assert places(["a", "b", "a"]) == [
        Place(rank=0, size=3, local_rank=0, local_size=2, node=0, nodes=2),
        Place(rank=2, size=3, local_rank=0, local_size=1, node=1, nodes=2),
        Place(rank=1, size=3, local_rank=1, local_size=2, node=0, nodes=2),
    ]


def test_others_get_what_rank_0_decides_each_in_its_turn(two) -> None:
    first, second = two
    assert [
        first.broadcast("stopped", lambda: False),
        first.broadcast("stopped", lambda: True),
    ] == [0, 1]
    assert first.broadcast("value", lambda: 0.5) == 0.5

    def never() -> bool:
        raise AssertionError("only rank 0 decides")

    assert second.broadcast("value", never) == 0.5
    assert [second.broadcast("stopped", never), second.broadcast("stopped", never)] == [0, 1]


def test_others_stop_and_fail_where_rank_0_does(two) -> None:
    first, second = two

    def stop() -> None:
        raise TrialStopped

    def fail() -> None:
        raise ValueError("x is not a number")

    with pytest.raises(TrialStopped):
        first.broadcast("report", stop)
    with pytest.raises(TrialStopped):
        second.broadcast("report", int)
    with pytest.raises(ValueError, match="x is not a number"):
        first.broadcast("report", fail)
    with pytest.raises(RuntimeError, match="raised on rank 0: ValueError: x is not a number"):
        second.broadcast("report", int)


def test_ranks_with_different_parameters_refuse_to_train(two) -> None:
    first, second = two
    first.require_equal("the parameters", {"x": 1.0})
    with pytest.raises(ValueError, match=r"the parameters of rank 1 .*2\.0.*of rank 0 .*1\.0"):
        second.require_equal("the parameters", {"x": 2.0})


def test_one_process_finds_a_group_and_what_torchrun_sets_and_leaves_both() -> None:
    store = serve("127.0.0.1")
    alone = ConnectedRanks(places(["here"])[0], Meeting("127.0.0.1", store.port), store)
    with alone.joined("cpu", connects=True):
        assert distributed.get_world_size() == 1
        assert (os.environ["RANK"], os.environ["LOCAL_WORLD_SIZE"]) == ("0", "1")
    assert not distributed.is_initialized()
    assert "RANK" not in os.environ
