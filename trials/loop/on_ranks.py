"""A run on one of the ranks of a trial in a study, where only rank 0 has a worker that decides.

Rank 0 says before each step what all ranks do next: train on, save, or end. It says so beside the
training (`contract.Ranks.broadcast`), so that no rank waits in an exchange of tensors for one that
waits for the study.
"""

import enum
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from trials.checkpoints.manifests import CheckpointError
from trials.contract import Diverged, Finding, Item, Run, Setup


class NextStep(enum.StrEnum):
    TRAIN = "train"
    SAVE = "save"
    END = "end"


class RunOnRanks:
    """A run on one of several ranks (a `contract.Run`), which `begin` begins there."""

    def __init__(self, setup: Setup, begin: Callable[[], Run]) -> None:
        assert setup.ranks is not None
        self._ranks = setup.ranks
        self._is_first = setup.ranks.rank == 0
        self._ended: str | None = None  # why, on a rank above 0
        self._ranks.require_equal("the settings", {**setup.params, "seed": setup.seed})
        self._group = ExitStack()
        self._group.enter_context(self._ranks.joined(setup.device, connects=True))
        try:
            self._run = begin()
        except CheckpointError:  # on all ranks, which begin afresh
            self._group.close()
            raise
        self._is_whole = True

    @property
    def finished(self) -> str | None:
        return self._run.finished or self._ended

    @property
    def best(self) -> Path | str | None:
        return self._run.best

    def __iter__(self) -> Iterator[Item]:
        items = iter(self._run)
        try:
            while self._trains_on():
                with self._together():
                    item: Item | NextStep = next(items, NextStep.END)
                if isinstance(item, NextStep):
                    return
                yield item
        except Diverged as error:
            if self._is_first:
                raise
            self._ended = str(error)  # all ranks have found it, and rank 0 decides what follows

    def _trains_on(self) -> bool:
        """Agree on what comes next, and save if that is it; True for a step or a report."""
        while (step := self._agreed(NextStep.TRAIN)) == NextStep.SAVE:
            with self._together():
                self._run.save()
        if step == NextStep.END:
            self._ended = "ended by rank 0"
        return step == NextStep.TRAIN

    def _agreed(self, own: NextStep) -> str:
        """The next step by rank 0; `own` counts there only."""
        return self._ranks.broadcast("next", lambda: own)

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Do what all ranks do. If it fails, others may still wait for this rank, and the end of
        the group would wait for them; only a run that diverges does so on all ranks at once."""
        self._is_whole = False
        try:
            yield
        except Diverged:
            self._is_whole = True
            raise
        self._is_whole = True

    def save(self) -> Path | str | None:
        self._agreed(NextStep.SAVE)
        with self._together():
            return self._run.save()

    def recorded(self, resource: float) -> None:
        self._run.recorded(resource)

    def findings(self) -> tuple[Finding, ...]:
        return self._run.findings()

    def close(self) -> bool:
        if self._is_first:
            self._agreed(NextStep.END)
        is_closed = self._run.close()
        if self._is_whole:
            self._group.close()
        return is_closed
