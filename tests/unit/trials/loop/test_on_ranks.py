"""A run on two ranks: what rank 0 is asked for happens on both, in the same order."""

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from support.patience import PATIENCE_S
from trials.checkpoints.manifests import CheckpointError
from trials.contract import Budget, Diverged, Report, Setup, Unit
from trials.devices.ranks import ConnectedRanks, Meeting, connect, places, serve
from trials.loop.on_ranks import RunOnRanks


class Calls:
    """A run of three steps that notes what happens to it."""

    best = None
    finished: str | None = None

    def __init__(self, error: Exception | None = None) -> None:
        self.noted: list[str] = []
        self._error = error

    def __iter__(self) -> Iterator[Report | None]:
        for number in (1, 2, 3):
            if self._error is not None and number == 2:
                raise self._error
            self.noted.append(f"step {number}")
            yield None
        self.finished = "budget used"
        self.noted.append("report")
        yield Report(3.0, {"loss": 1.0})

    def save(self) -> Path:
        self.noted.append("save")
        return Path("here")

    def close(self) -> bool:
        self.noted.append("close")
        return True


class Here(ConnectedRanks):
    """Ranks of one process, without a process group."""

    def joined(self, device: str, *, connects: bool) -> Any:
        assert connects
        return nullcontext()


@pytest.fixture
def two() -> tuple[Here, Here]:
    store = serve("127.0.0.1")
    meeting = Meeting("127.0.0.1", store.port)
    first, second = places(["here", "here"])
    return Here(first, meeting, store), Here(second, meeting, connect(meeting))


def on(ranks: Here, run: Calls, seed: int = 5) -> RunOnRanks:
    budget = Budget(Unit.STEPS, 3.0, (3.0,))
    setup = Setup({"lr": 0.1}, seed, budget, Path("out"), ranks=ranks)
    return RunOnRanks(setup, lambda: run)  # type: ignore[arg-type]  # it has what is called


def follow(ranks: Here, run: Calls) -> tuple[threading.Thread, list[RunOnRanks]]:
    """Iterate a run on another rank, in a thread, as its worker does."""
    made = []

    def work() -> None:
        made.append(on(ranks, run))
        list(made[0])
        made[0].close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, made


def test_another_rank_trains_saves_and_ends_where_rank_0_does(two: tuple[Here, Here]) -> None:
    calls, others = Calls(), Calls()
    thread, made = follow(two[1], others)
    run = on(two[0], calls)
    assert run.save() == Path("here")  # before the first step, as by a worker that has to end
    items = iter(run)
    next(items)
    next(items)
    run.save()
    run.close()
    thread.join(PATIENCE_S)
    assert calls.noted == others.noted == ["save", "step 1", "step 2", "save", "close"]
    assert run.finished is None
    assert made[0].finished == "ended by rank 0"


def test_a_run_that_has_ended_by_itself_has_done_so_on_all_ranks(two: tuple[Here, Here]) -> None:
    calls, others = Calls(), Calls()
    thread, made = follow(two[1], others)
    run = on(two[0], calls)
    *_, last = run
    run.close()
    thread.join(PATIENCE_S)
    assert isinstance(last, Report)
    assert calls.noted == others.noted
    assert run.finished == made[0].finished == "budget used"


def test_rank_0_alone_says_that_a_loss_has_diverged(two: tuple[Here, Here]) -> None:
    thread, made = follow(two[1], Calls(Diverged("loss became nan")))
    run = on(two[0], Calls(Diverged("loss became nan")))
    with pytest.raises(Diverged):
        list(run)
    run.close()
    thread.join(PATIENCE_S)
    assert made[0].finished == "loss became nan"


def test_ranks_with_different_settings_refuse_to_train(two: tuple[Here, Here]) -> None:
    on(two[0], Calls(), seed=5)
    with pytest.raises(ValueError, match=r"the settings of rank 1 .*'seed': 6.* of rank 0 "):
        on(two[1], Calls(), seed=6)


def test_a_damaged_checkpoint_ends_the_group_so_that_it_can_be_joined_again(
    two: tuple[Here, Here], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []
    monkeypatch.setattr(Here, "joined", lambda *_, **__: nullcontext_that(left.append))

    def damaged() -> Calls:
        raise CheckpointError("step-2 is damaged")

    budget = Budget(Unit.STEPS, 3.0, (3.0,))
    with pytest.raises(CheckpointError):
        RunOnRanks(Setup({}, 5, budget, Path("out"), ranks=two[0]), damaged)  # type: ignore[arg-type]
    assert left == ["left"]


class nullcontext_that:
    """A context that notes when it is left."""

    def __init__(self, note: Any) -> None:
        self._note = note

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self._note("left")
