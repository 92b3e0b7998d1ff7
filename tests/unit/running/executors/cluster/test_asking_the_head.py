"""What is asked of the head of a cluster, which may never answer."""

import threading
from collections.abc import Callable

import pytest
from ray.exceptions import GetTimeoutError, RaySystemError

from hpsearch.running.executors.cluster import ray_cluster
from hpsearch.running.executors.cluster.ray_cluster import ask_head
from support.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "SILENT_S", 60.0)


def raising(error: Exception) -> Callable[[], str]:
    def question() -> str:
        raise error

    return question


def test_an_answer_that_comes_in_time_is_returned_and_other_errors_are_raised():
    late: list[str] = []
    assert ask_head(lambda: "a room", late.append) == "a room"
    assert late == []
    with pytest.raises(ValueError, match="no such resource"):
        ask_head(raising(ValueError("no such resource")))


def test_an_answer_that_comes_late_is_handed_over_and_not_waited_for(monkeypatch):
    monkeypatch.setattr(ray_cluster, "SILENT_S", 0.05)
    answered, came = threading.Event(), threading.Event()
    late: list[str] = []

    def question() -> str:
        answered.wait()
        return "a room"

    def take(answer: str) -> None:
        late.append(answer)
        came.set()

    assert ask_head(question, take) is None
    assert late == []
    answered.set()
    assert came.wait(PATIENCE_S)
    assert late == ["a room"]


@pytest.mark.parametrize("error", [GetTimeoutError("no answer"), RaySystemError("gone")])
def test_errors_of_ray_are_no_answer(error):
    late: list[str] = []
    assert ask_head(raising(error), late.append) is None
    assert late == []
