"""A trial as its training function sees it, and the state that it shares with its run."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened_on_ranks
from trials.checkpoints.disk import drafts
from trials.checkpoints.folders import is_url
from trials.checkpoints.manifests import Label
from trials.contract import TRAINED_TO, Goal, Item, Note, Question, Report, Setup, TrialStopped
from trials.foreign import plain
from trials.running.reported import (
    LENGTHS,
    Stopwatch,
    numbers_of,
    plain_note,
    resource_of,
    samples_in,
)
from trials.settings import in_full
from trials.tasks.function.report_history import ReportHistory

T = TypeVar("T")

OFTEN = 1.1  # the factor by which it has grown when it is noted again
_ELAPSED, _HISTORY = ".elapsed.json", ".reports.json"


class FunctionCall:
    """The state of a call of a training function, which its `FunctionTrial` and its run share.

    Attributes:
        is_first: Whether this process is rank 0, or trains its trial alone. Others write into a
            folder that is thrown away.
    """

    def __init__(self, setup: Setup, is_stopping: Callable[[], bool]) -> None:
        self._is_stopping = is_stopping
        # A checkpoint from a store is downloaded for as long as the function runs.
        self._open = ExitStack()
        self._budget, self._total = setup.budget, setup.budget.total
        self._lengths = [each for name, each in setup.params.items() if name in LENGTHS]
        self._ranks = setup.ranks
        self._rank = 0 if setup.ranks is None else setup.ranks.rank
        self.is_first = self._rank == 0
        folder = setup.folder
        if not self.is_first:
            folder = self._open.enter_context(drafts.temporary("hpsearch-rank-"))
        self.checkpoint: Path | None = None
        self.checkpoints = Checkpoints(folder, unit=setup.budget.unit)
        if setup.resume_from is not None:
            self._continue_from(setup.resume_from)
        self.newest: Path | str | None = None
        self.best_of_first: Path | str | None = None  # on a rank above 0
        self.history = ReportHistory(setup, self.checkpoints, _read(self.checkpoint, _HISTORY))
        self._draft: tuple[Path, Collection[str]] | None = None
        """The draft since the last report, and the names of its files of state."""
        self._resource = 0.0
        self.watch = Stopwatch(_read(self.checkpoint, _ELAPSED) or 0.0)
        self.watch.go_on()

    def _continue_from(self, source: Path | str) -> None:
        opening = opened_on_ranks(
            source, self._rank, lambda find: self.broadcast("checkpoint", find)
        )
        found = self._open.enter_context(opening)
        self.checkpoint = found.files
        if self.is_first:
            self.checkpoints.continue_from(source, found.path)

    def broadcast(self, subject: str, decide: Callable[[], T]) -> T:
        return decide() if self._ranks is None else self._ranks.broadcast(subject, decide)

    @property
    def stopping(self) -> bool:
        return self._is_stopping()

    @property
    def has_reported(self) -> bool:
        return self._resource > 0

    @property
    def is_trained(self) -> bool:
        """It has reported the full budget of its trial."""
        return self._resource >= self._total

    @property
    def how_it_ended(self) -> str:
        """The reason why a call ended that nobody has stopped."""
        reached = self.history.trained_to or self._resource
        if reached >= self._total:
            return "budget used"
        what = "the function returned"
        if not reached:
            return what
        unit = self._budget.unit.value
        return f"{what} at {in_full(reached)} of {in_full(self._total)} {unit}"

    @property
    def best(self) -> Path | str | None:
        if not self.is_first:
            return self.best_of_first
        return None if self.newest is None else self.checkpoints.best_until(self.newest)

    def report(
        self, resource: float, metrics: Mapping[str, Any], *, is_last: bool = False
    ) -> Report | Note:
        """The item of a call of `FunctionTrial.report`, with its errors; a note for one more report
        at the full budget. It is the last one also where a parameter says how long the trial
        trains."""
        reached = resource_of(resource)
        if self.is_trained:
            if reached > self._resource:
                raise TrialStopped
            return Note(metrics=numbers_of(metrics))
        if not reached > self._resource:
            what = f"after {in_full(self._resource)}: the resource must rise"
            raise ValueError(f"trial.report({resource}) {what}")
        values = numbers_of(metrics)
        saved = best = None
        if self._draft is not None:
            (draft, state), self._draft = self._draft, None
            saved = self.newest = self.checkpoints.commit(draft, Label(reached, state=state))
        elapsed = self.watch.seconds
        self.history.note(values, saved)
        if saved is not None:
            best = self.checkpoints.reported(reached, saved)
        self._resource = reached
        is_last = is_last or reached in self._lengths
        samples = samples_in(metrics)
        return Report(
            *(reached, values), None, elapsed, saved, best, is_last=is_last, samples=samples
        )

    @contextmanager
    def saving(self, state: Collection[str]) -> Iterator[Path]:
        """A draft, which the next report makes a checkpoint, and the next save replaces."""
        with self.checkpoints.drafting() as folder:
            yield folder
            (folder / _ELAPSED).write_text(json.dumps(self.watch.seconds))
            (folder / _HISTORY).write_text(json.dumps(self.history.state_dict()))
        self._discard_draft()
        self._draft = folder, state

    def _discard_draft(self) -> None:
        if self._draft is not None:
            folder, _ = self._draft
            drafts.discard(folder)
            self._draft = None

    def raise_if_stopping(self) -> None:
        if self.stopping:
            raise TrialStopped

    def close(self) -> None:
        """Remove downloaded files, and a draft without a report."""
        self._discard_draft()
        self._open.close()


class FunctionTrial:
    """A trial as its training function sees it.

    Attributes:
        number: The trial's number in its study; 0 without a study.
        params: Everything from `args` and `settings`, and the trial's own parameters.
        unread: The names of the params that a script has yet to read.
        seed: The trial's own seed.
        goals: The objectives, the first one first; empty without a study.
        budget: The length of the training in `unit`; an int if it is whole.
        unit: The unit of the budget, such as epochs.
        report_at: The ascending levels at which the study wants a report; the last one is the
            budget.
        fold, folds: The number, from 0, of the fold to measure on, and how many there are; None
            where the budget has no folds: train on everything.
        device: A torch device name, such as cpu or cuda:0.
        folder: The trial's own folder: a path, or a URL where checkpoints go to a store.
        checkpoint: The folder of a checkpoint to continue from, or None to start afresh.
        rank: This process's number among those that train the trial, from 0.
        world_size: The number of these processes.
    """

    def __init__(self, setup: Setup, call: FunctionCall, hand_over: Callable[[Item], Any]) -> None:
        total = setup.budget.total
        self.number = setup.number
        self.params = setup.params
        self.unread: set[str] = set()
        self.seed = setup.seed
        self.goals: tuple[Goal, ...] = setup.objectives
        self.budget: int | float = int(total) if total == int(total) else total
        self.unit = setup.budget.unit
        self.report_at = setup.budget.report_at
        self.fold = None if setup.fold is None else setup.fold.number
        self.folds = None if setup.fold is None else setup.fold.of
        self.device = setup.device
        self.folder = setup.folder
        self.checkpoint = call.checkpoint
        self.rank = 0 if setup.ranks is None else setup.ranks.rank
        self.world_size = 1 if setup.ranks is None else setup.ranks.size
        self._call = call
        self._hand_over = hand_over
        self._noted: float | None = None

    @property
    def stopped(self) -> bool:
        """The trial is over: the next report or save raises `TrialStopped`. On several ranks, each
        one asks as often as rank 0, and has its answer."""
        return self._call.broadcast("stopped", lambda: self._call.stopping)

    @property
    def saved(self) -> Path | str | None:
        """The path or URL of the newest checkpoint that this attempt has reported, if any."""
        return self._call.newest

    @property
    def best(self) -> Path | str | None:
        """The path or URL of the checkpoint of this attempt's best report, if any."""
        return self._call.best

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter of the trial; the default if it has none of that name.

        `seed` is the trial's seed, and the name of the budget's unit, such as `epochs`, its budget.
        Where the budget has folds, `fold` and `folds` are the attributes."""
        self.unread.discard(name)
        of_fold = {} if self.fold is None else {"fold": self.fold, "folds": self.folds}
        known = {"seed": self.seed, self.unit.value: self.budget, **of_fold, **self.params}
        return known.get(name, default)

    def report(self, resource: float, metrics: Mapping[str, Any], *, is_last: bool = False) -> None:
        """Report metrics at a resource level, and wait for the go-ahead.

        One more report at the full budget adds its metrics to the last report. On several ranks,
        the report of rank 0 counts, and the others wait here for what it is told.

        Args:
            resource: In the budget's unit; above the resource of the report before.
            metrics: Numbers by name: Python's, numpy's or torch's. `samples` may be the results of
                all validation samples, in their order, whose mean is the objective.
            is_last: The training ends here, before its budget: the trial does not pause.

        Raises:
            ValueError: The resource is not a finite number that rises, a metric is not a number, or
                a person cannot type its name.
            OSError: The checkpoint of the report cannot be saved, as on a full disk.
            TrialStopped: The trial is over; `finally` blocks run.
        """
        call = self._call
        newest, best = call.broadcast("report", lambda: self._report(resource, metrics, is_last))
        if not call.is_first:
            call.newest, call.best_of_first = _place(newest), _place(best)

    def _report(
        self, resource: float, metrics: Mapping[str, Any], is_last: bool
    ) -> tuple[Path | str | None, Path | str | None]:
        self._call.raise_if_stopping()
        require_all_read(self)
        self._wait_for(self._call.report(resource, metrics, is_last=is_last))
        return self._call.newest, self._call.best

    def ask(self, name: str, distribution: str) -> Any:
        """Ask the study for the value of a new parameter, and wait for it. An attempt that repeats
        or continues the trial finds the value among its parameters. `distribution`: in the JSON
        that Optuna writes distributions in. Raises TrialStopped if the trial is over."""
        question = Question(plain(name), plain(distribution))
        return self._call.broadcast("value", lambda: self._wait_for(question))

    def note(self, note: Note) -> None:
        """Record something about the trial, beside what it reports. Raises TrialStopped if the
        trial is over."""
        self._call.broadcast("note", lambda: self._wait_for(plain_note(note)))

    def note_trained_to(self, resource: float, *, is_end: bool = False) -> None:
        """Record how far the trial has trained, where its last report stands elsewhere: at the full
        budget, which it ends before or goes beyond. On the way only now and then. Raises
        TrialStopped if the trial is over."""
        noted = self._noted
        self._call.history.trained_to = resource
        if is_end or noted is None or resource >= OFTEN * noted:
            self._noted = resource
            self.note(Note(kept={TRAINED_TO: resource}))

    def _wait_for(self, item: Item) -> Any:
        self._call.raise_if_stopping()
        self._call.watch.pause()
        given = self._hand_over(item)
        self._call.watch.go_on()
        self._call.raise_if_stopping()
        return given

    @contextmanager
    def save(self, state: Collection[str] = ()) -> Iterator[Path]:
        """Save a checkpoint: ``with trial.save() as folder:`` gives a folder to write files into.

        It is there whole or not at all, and belongs to the report that follows, whose resource
        names it, such as `epoch-2`. A trial that continues finds it as `checkpoint`. Without such a
        report it is removed; the second of two saves before a report counts. On several ranks, the
        checkpoint is what rank 0 writes; the others write into a folder that is thrown away.

        Args:
            state: Names of files that only a continued trial needs, such as an optimizer's. They
                are removed when the trial has ended, and need not be there.

        Raises:
            TrialStopped: The trial is over.
        """
        self._call.broadcast("save", self._call.raise_if_stopping)
        with self._call.saving(state) as folder:
            yield folder


def require_all_read(trial: FunctionTrial) -> None:
    if trial.unread:
        names = ", ".join(sorted(trial.unread))
        what = f"the script has not read {names} of the study file before its first report"
        advice = f'write trial.get("{min(trial.unread)}", ...), or remove it from the study file'
        raise ValueError(f"{what}: {advice}")


def _place(told: Path | str | None) -> Path | str | None:
    """A checkpoint's path or URL, of which rank 0 has told the text."""
    return told if told is None or is_url(told) else Path(told)


def _read(checkpoint: Path | None, name: str) -> Any:
    if checkpoint is None:
        return None
    file = checkpoint / name
    if not file.is_file():
        return None
    return json.loads(file.read_text())
