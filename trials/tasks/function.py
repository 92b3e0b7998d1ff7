"""The user's own training function as a task: ``kind: my_package.my_module:train``.

    def train(params, trial):
        model = build(params["width"], trial.seed)
        for epoch in range(trial.budget):
            ...
            trial.report(epoch + 1, {"accuracy": accuracy})

The function runs in a thread of its own, and takes turns with whoever iterates the run: `trial.report` hands the report
over and waits until the run is iterated further. A stopped trial is told so by `TrialStopped` out of `trial.report`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from trials.checkpoint import Checkpoints, opened
from trials.contract import Finding, Problem, Report, Setting, Setup, TaskError, TrialStopped
from trials.settings import nearest
from trials.tasks.description import Field, TaskDescription
from trials.tasks.function_course import Course

log = logging.getLogger(__name__)

TURN_S = 0.2
"""How long the run waits for a report before it hands control back, so that a worker can look around."""
GRACE_S = 5.0
"""How long a closed run waits for its function to end."""
_ELAPSED, _COURSE = ".elapsed.json", ".course.json"

Function = Callable[[Mapping[str, Any], "Trial"], object]


class Trial:
    """What a training function is given of its trial.

    Attributes:
        seed: The trial's own seed.
        budget: How far to train, in the study file's unit; an int where it is whole.
        device: A torch device name, such as cpu or cuda:0.
        folder: The trial's own folder: a path, or a URL where checkpoints go to a store.
        checkpoint: The folder of a checkpoint to continue from, or None to start afresh.
    """

    def __init__(self, setup: Setup, hand_over: Callable[[Report], None]) -> None:
        total = setup.budget.total
        self.seed = setup.seed
        self.budget: int | float = int(total) if total == int(total) else total
        self.device = setup.device
        self.folder = setup.folder
        self._open = ExitStack()  # a checkpoint from a store is downloaded for as long as the function runs
        self.checkpoint = None if setup.resume_from is None else self._open.enter_context(opened(setup.resume_from))
        self._hand_over = hand_over
        self._checkpoints = Checkpoints(setup.folder)
        self._saved: Path | str | None = None
        self._resource = 0.0
        self._stopping = False
        self._course = Course(setup, self._checkpoints, _read(self.checkpoint, _COURSE))
        self._before = _read(self.checkpoint, _ELAPSED) or 0.0
        self._resumed = time.perf_counter()

    def report(self, resource: float, metrics: Mapping[str, Any]) -> None:
        """Report metrics at a resource level, and wait for the go-ahead.

        Args:
            resource: How far the trial has trained, in the budget's unit; above that of the report before.
            metrics: Numbers by name: Python's, numpy's or torch's.

        Raises:
            ValueError: The resource does not rise, or a metric is not a number.
            TrialStopped: The trial is over; `finally` blocks run.
        """
        self._raise_if_stopped()
        reached = float(resource)
        if not reached > self._resource:
            raise ValueError(f"trial.report({resource}) after {self._resource:g}: the resource must rise")
        values = {str(name): _number(name, value) for name, value in metrics.items()}
        elapsed = self._elapsed()
        saved, self._saved = self._saved, None
        if saved is not None:
            self._checkpoints.reported(reached, saved)
        self._course.note(reached, values, elapsed, saved)
        self._resource = reached
        self._hand_over(Report(reached, values, elapsed=elapsed, checkpoint=saved))
        self._before, self._resumed = elapsed, time.perf_counter()
        self._raise_if_stopped()

    @contextmanager
    def save(self) -> Iterator[Path]:
        """Save a checkpoint: ``with trial.save() as folder:`` gives a folder to write files into.

        It is there whole or not at all, and belongs to the report that follows. A trial that continues finds it as
        `checkpoint`.
        """
        self._raise_if_stopped()
        with self._checkpoints.writing(self._checkpoints.next_number()) as folder:
            yield folder
            (folder / _ELAPSED).write_text(json.dumps(self._elapsed()))
            (folder / _COURSE).write_text(json.dumps(self._course.state_dict()))
        self._saved = self._checkpoints.last

    def _elapsed(self) -> float:
        """Seconds trained over all attempts, without the waiting for a go-ahead."""
        return self._before + time.perf_counter() - self._resumed

    def _raise_if_stopped(self) -> None:
        if self._stopping:
            raise TrialStopped


class FunctionRun:
    """One call of a training function (a `contract.Run`).

    The function's thread and the iterating one take turns with two locks: `_go` is released to let the function run,
    `_news` by the function's thread when there is a report, or the function's end.
    """

    def __init__(self, function: Function, params: Mapping[str, Any], setup: Setup, grace_s: float = GRACE_S) -> None:
        self.finished: str | None = None
        self._function, self._params, self._total, self._grace_s = function, params, setup.budget.total, grace_s
        self._trial = Trial(setup, self._hand_over)
        self._go, self._news = _taken_lock(), _taken_lock()
        self._started = self._ended = self._waiting = False
        self._report: Report | None = None
        self._error: BaseException | None = None

    def __iter__(self) -> Iterator[Report | None]:
        """The function's reports; None while it takes its time between two of them."""
        while self.finished is None and not self._trial._stopping:
            self._let_go()
            while not self._news.acquire(timeout=TURN_S):
                yield None
                if self._trial._stopping:
                    return
            if self._ended:
                self._end()
                return
            self._waiting = True
            report = self._report
            assert report is not None
            if report.resource >= self._total:
                self.finished = "budget used"
            yield report

    def save(self) -> Path | str | None:
        """The checkpoint that came with the report the function waits in; None where it saved none for it."""
        return self._report.checkpoint if self._waiting and self._report is not None else None

    def recorded(self, resource: float) -> None:
        """The reports up to `resource` are on record: checkpoints from before may go."""
        self._trial._checkpoints.recorded(resource)

    def findings(self) -> tuple[Finding, ...]:
        """What its reports so far show of its health."""
        return self._trial._course.findings()

    def close(self) -> bool:
        """Raise `TrialStopped` in the function and wait for its end, but not for ever: False if it goes on."""
        self._trial._stopping = True
        while self._started and not self._ended:
            if self._waiting:
                self._waiting = False
                self._go.release()
            if not self._news.acquire(timeout=self._grace_s):
                log.warning("the training function goes on in the background until its next trial.report")
                return False
            self._waiting = not self._ended
        self._trial._open.close()
        if self._error is not None and not isinstance(self._error, TrialStopped):
            log.warning("the stopped training function raised %r", self._error)
        return True

    def _let_go(self) -> None:
        if not self._started:
            self._started = True
            _thread().run(self._call)
        elif self._waiting:
            self._waiting = False
            self._go.release()

    def _end(self) -> None:
        error, self._error = self._error, None
        if isinstance(error, SystemExit) and error.code not in (None, 0):
            raise RuntimeError(f"the training function called sys.exit({error.code!r})") from error
        if error is not None and not isinstance(error, SystemExit):
            self.finished = "raised"
            raise error
        self.finished = "the function returned"

    # In the function's thread:

    def _call(self) -> threading.Lock:
        try:
            self._function(self._params, self._trial)
        except BaseException as error:  # noqa: BLE001 - handed to the iterating thread, which raises it
            self._error = error
        self._ended = True
        return self._news

    def _hand_over(self, report: Report) -> None:
        self._report = report
        self._news.release()
        self._go.acquire()


class FunctionTask:
    """The task of a training function (a `contract.Task`).

    Args:
        task: The `task` part of a study file: `kind`, and `args` that every trial is given.
        base: The folder that its module may stand in.

    Raises:
        TaskError: There is no such function, or it does not take `(params, trial)`.
    """

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        self.metrics: frozenset[str] | None = None
        self.settings: Mapping[str, Setting] | None = None
        self._task, self._base = dict(task), base
        self._args: dict[str, Any] = dict(task.get("args") or {})
        self._function = find(task["kind"], base)

    def __reduce__(self) -> tuple[Any, ...]:
        return FunctionTask, (self._task, self._base)  # another process imports the function itself

    def data_key(self, params: Mapping[str, Any]) -> str:
        """One for all: a function reads its own data."""
        return "none"

    def prepare(self, params: Mapping[str, Any]) -> None:
        """Nothing: a function reads its own data."""

    def start(self, setup: Setup, data: Any) -> FunctionRun:
        """A call of the function, begun when it is first iterated."""
        return FunctionRun(self._function, {**self._args, **setup.params}, setup)

    def rehearse(self, setup: Setup, data: Any) -> dict[str, float]:
        """Nothing is known of a function before it runs."""
        return {}


def describe(kind: str) -> TaskDescription:
    """The description of a training function, from its name alone."""
    args = Field("args", (dict,), "parameters given to every trial")
    return TaskDescription(kind=kind, fields={"args": args}, settings=None, metrics=None)


def find(kind: str, base: Path) -> Function:
    """Import the function that ``package.module:function`` names, looking in `base` first.

    Raises:
        TaskError: There is no such module or function, it fails on import, or it cannot be called.
    """
    module_name, _, name = kind.partition(":")
    if str(base) not in sys.path:
        sys.path.insert(0, str(base))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise _mistake(f"no module named {error.name!r}; it must stand in {base} or be installed") from None
        raise _mistake(f"importing {module_name} failed: {error}; install what it imports") from error
    except Exception as error:
        raise _mistake(f"importing {module_name} failed: {type(error).__name__}: {error}; mend the module") from error
    function = getattr(module, name, None)
    if function is None:
        functions = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
        raise _mistake(f"{module_name} has no function {name!r}; {nearest(name, functions)}")
    if not callable(function) or isinstance(function, type):
        raise _mistake(f"{kind} is no function; write def {name}(params, trial)")
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        given = f"{name}{inspect.signature(function)}"
        raise _mistake(f"{given} cannot be called with (params, trial); write def {name}(params, trial)") from None
    found: Function = function
    return found


def _mistake(what: str) -> TaskError:
    return TaskError([Problem("task.kind", what)])


def _number(name: object, value: Any) -> float:
    try:
        # A tensor's own way: float() warns of one that carries gradients.
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"trial.report: metric {name!r} must be a number, not {value!r}") from None


def _read(checkpoint: Path | None, name: str) -> Any:
    """What `Trial.save` wrote beside the function's own files; None where there is no such file."""
    if checkpoint is None or not (checkpoint / name).is_file():
        return None
    return json.loads((checkpoint / name).read_text())


# ----------------------------------------------------------------------------------------------------- threads


def _taken_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


class _Thread:
    """A thread that calls one job after another; making one costs more than a short trial."""

    def __init__(self) -> None:
        self._wake = _taken_lock()
        self._job: Callable[[], threading.Lock] | None = None
        # A daemon: a function that never reports again must not keep the process alive.
        threading.Thread(target=self._work, name="training-function", daemon=True).start()

    def run(self, job: Callable[[], threading.Lock]) -> None:
        """Call `job` in the thread, and release the lock it returns once the thread is free again."""
        self._job = job
        self._wake.release()

    def _work(self) -> None:
        while True:
            self._wake.acquire()
            job, self._job = self._job, None
            assert job is not None
            done = job()
            del job  # it holds the run, and with it whatever the function left behind
            _idle.append(self)
            done.release()


_idle: list[_Thread] = []


def _thread() -> _Thread:
    try:
        return _idle.pop()
    except IndexError:
        return _Thread()
