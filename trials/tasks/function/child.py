"""The process of training code: its main thread trains one attempt after another.

It is started by `process.TrainingProcess`, with one end of a pipe. Nothing else runs in it, so that
the code may set signal handlers, fork and print as where it is started by hand.

Where each attempt is to have a new process, it is forked from this one, which has imported nothing
of the user's and begun no thread: that takes milliseconds, where an import of torch takes seconds.
"""

import atexit
import ctypes
import os
import pickle
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from trials.checkpoints.manifests import CheckpointError
from trials.contract import Item, Note, Pruned, Setup, TaskError, TrainingFailed, TrialStopped
from trials.devices.memory import keep_to_share
from trials.foreign import code_of
from trials.running.arithmetic import use_threads
from trials.running.randomness import seed_everything
from trials.running.reported import numbers_among
from trials.running.runner import failure_of
from trials.script import in_trial
from trials.tasks.function.messages import (
    Begin,
    CallEnded,
    Close,
    Closed,
    Died,
    Done,
    GoOn,
    Preload,
    Ready,
    Recorded,
    Said,
)
from trials.tasks.function.process_state import HEAVY, ImportWatch, ProcessState
from trials.tasks.function.trial import FunctionCall, FunctionTrial, require_all_read

if TYPE_CHECKING:
    from trials.tasks.function.function_task import FunctionTask

_CONTRACT = (TaskError, CheckpointError, Pruned)
_PDEATHSIG = 1


class Line:
    """The end of the pipe in this process, in one attempt."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self._is_stopping = False
        self.call: FunctionCall | None = None
        self.library: str | None = None
        """What the next process may import ahead."""

    def say(self, message: Any) -> None:
        self._connection.send(message)

    def hand_over(self, item: Item) -> Any:
        """Say something, and wait for the go-ahead; returns the value that was asked for."""
        assert self.call is not None
        with self._lock:
            self.say(Said(item, self.call.best, self.library))
            return self.wait()

    def is_stopping(self) -> bool:
        """The trial is over, as far as the worker has said so."""
        # Another thread of the function may wait for the go-ahead just now.
        if not self._is_stopping and self._lock.acquire(blocking=False):
            try:
                while not self._is_stopping and self._connection.poll(0):
                    self._take(self._connection.recv())
            finally:
                self._lock.release()
        return self._is_stopping

    def wait(self) -> Any:
        while not self._is_stopping:
            order = self._connection.recv()
            if isinstance(order, GoOn):
                return order.given
            self._take(order)
        return None

    def _take(self, order: Any) -> None:
        match order:
            case Close():
                self._is_stopping = True
            case Recorded():
                self.say(Done(self._recorded(order.resource)))

    def _recorded(self, resource: float) -> BaseException | None:
        assert self.call is not None
        try:
            self.call.checkpoints.recorded(resource)
        except Exception as error:  # noqa: BLE001 - each store has errors of its own
            return carried(error)
        return None

    def fail(self, error: BaseException) -> bool:
        """Say that an attempt ends by an error, and wait for its end; False."""
        self.say(CallEnded("raised", error=carried(error)))
        self.wait_for_close()
        return False

    def wait_for_close(self) -> None:
        """Wait for the end of the trial after that of the function."""
        while not self._is_stopping:
            self._take(self._connection.recv())


def attend(
    line: Line,
    setup: Setup,
    function: Callable[[Mapping[str, Any], FunctionTrial], object],
    params: Mapping[str, Any],
    *,
    connects: bool = True,
) -> bool:
    """Attend to one attempt until it is closed; False if it has failed. `connects`: several ranks
    are connected before the function is called."""
    try:
        call = line.call = FunctionCall(setup, line.is_stopping)
    except BaseException as error:  # noqa: BLE001 - it is the worker's to judge
        return line.fail(error)
    try:
        if setup.ranks is not None:
            setup.ranks.require_equal("the parameters", {**params, "trial.seed": setup.seed})
        trial = FunctionTrial(replace(setup, params=params), call, line.hand_over)
        line.say(Ready())
        line.wait()
        if line.is_stopping():
            return True
        returned: object = None
        failure: BaseException | None = None
        ranks = setup.ranks
        joined = nullcontext() if ranks is None else ranks.joined(setup.device, connects=connects)
        try:
            with in_trial(trial), joined:
                returned = function(params, trial)
        except BaseException as raised:  # noqa: BLE001 - it is the worker's to judge
            failure = raised
        end = _ended(line, call, trial, failure, returned)
        failure = returned = None  # with what their frames hold
        line.say(end)
        line.wait_for_close()
        return end.error is None or end.was_stopped
    except BaseException as error:  # noqa: BLE001 - it is the worker's to judge
        return line.fail(error)
    finally:
        call.close()


def _ended(
    line: Line,
    call: FunctionCall,
    trial: FunctionTrial,
    error: BaseException | None,
    returned: object,
) -> CallEnded:
    may_stop = call.is_trained or not call.is_first
    if isinstance(error, SystemExit):
        if error.code not in (None, 0):
            what = f"the training function called sys.exit({code_of(error.code)})"
            error = RuntimeError(what).with_traceback(error.__traceback__)
        else:
            error = None
    elif isinstance(error, TrialStopped) and may_stop:
        error = None
    finished = call.how_it_ended
    if error is None:
        try:
            _hand_over_returned(line, call, trial, returned)
        except (Exception, TrialStopped) as raised:  # noqa: BLE001 - as of the function
            error = raised
    if error is not None:
        finished = "raised"
    was_stopped = isinstance(error, TrialStopped)
    told = None if error is None else carried(error)
    return CallEnded(finished, call.history.findings(), call.best, told, was_stopped)


def _hand_over_returned(
    line: Line, call: FunctionCall, trial: FunctionTrial, returned: object
) -> None:
    metrics = numbers_among(returned) if isinstance(returned, Mapping) and call.is_first else {}
    if not metrics:
        return
    call.raise_if_stopping()
    if call.has_reported or call.checkpoint is not None:
        line.hand_over(Note(metrics=metrics))
    else:
        require_all_read(trial)
        line.hand_over(call.report(trial.budget, metrics))


def carried(error: BaseException) -> BaseException:
    """An error as it can be sent: of the contract, or as what it is recorded."""
    if type(error) in _CONTRACT:
        return error.with_traceback(None)
    return TrainingFailed(failure_of(error))


class Child:
    """The process. `connection`: to its worker."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._environment: Mapping[str, str] = dict(os.environ)
        self._tasks: dict[bytes, FunctionTask] = {}

    def serve(self) -> None:
        while True:
            try:
                order = self._connection.recv()
            except (EOFError, OSError):
                return
            if isinstance(order, Preload):
                with suppress(ImportError):
                    __import__(order.library)
            if isinstance(order, Begin):
                forks = sys.platform == "linux" and not order.stays
                serve = self._serve_in_fork if forks else self._serve
                with suppress(OSError):
                    self._connection.send(serve(order))

    def _serve_in_fork(self, order: Begin) -> Closed | Died:
        parent = os.getpid()
        heard, saying = os.pipe()
        os.set_blocking(heard, False)
        with warnings.catch_warnings():  # of threads, which only wait
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process == 0:
            _die_with(parent)
            _ignore_notices()
            self._attempt(order)
            _end_of_process(order)
            os.write(saying, b"\0")
            os._exit(0)
        os.close(saying)
        try:
            _, status = os.waitpid(process, 0)
            with suppress(BlockingIOError):
                if os.read(heard, 1):
                    return Closed(goes_on=True)
            return Died(os.waitstatus_to_exitcode(status))
        finally:
            os.close(heard)

    def _serve(self, order: Begin) -> Closed:
        if self._attempt(order):
            return Closed(goes_on=True)
        _end_of_process(order)
        with suppress(OSError):
            self._connection.send(Closed(goes_on=False))
        os._exit(0)  # the rest of an interpreter's end has no effect, and takes long

    def _print_to_worker(self) -> None:
        with socket.socket(fileno=os.dup(self._connection.fileno())) as line:
            _, outputs, _, _ = socket.recv_fds(line, 1, 2)
        for number, output in zip((1, 2), outputs, strict=True):
            os.dup2(output, number)
            os.close(output)

    def _attempt(self, order: Begin) -> bool:
        self._print_to_worker()
        line = Line(self._connection)
        self._take_environment(order.environment)
        try:
            setup: Setup = pickle.loads(order.setup)  # noqa: S301 - of our own worker
            task = self._task(order.task)
            function = task.function
            state = ProcessState()
        except BaseException as error:  # noqa: BLE001 - it is the worker's to judge
            return line.fail(error)

        def prepare() -> None:
            use_threads(order.environment)
            keep_to_share(setup.device, setup.share)
            seed_everything(setup.seed)

        def note_import(library: str, before: Mapping[str, str], filters: Sequence[object]) -> None:
            line.library = library if state.note_import(library, before, filters) else None
            prepare()

        prepare()
        line.library = HEAVY if HEAVY in sys.modules else None
        params = {**task.args, **setup.params}
        with ImportWatch(HEAVY, note_import), state.exits_within(task.base):
            is_well = attend(line, setup, function, params, connects=task.connects)
        if not (is_well and task.stays):
            return False
        left = state.put_back(setup.device)
        if left:
            what = "the next trial gets a new process, as this one has left"
            print(f"[hpsearch] {what}: {', '.join(left)}", file=sys.stderr)  # noqa: T201 - the log
        return not left

    def _take_environment(self, now: Mapping[str, str]) -> None:
        before, self._environment = self._environment, now
        for name in before.keys() - now.keys():
            os.environ.pop(name, None)
        os.environ.update({name: now[name] for name in now if before.get(name) != now[name]})

    def _task(self, pickled: bytes) -> "FunctionTask":
        if pickled not in self._tasks:
            self._tasks[pickled] = pickle.loads(pickled)  # noqa: S301 - of our own worker
        return self._tasks[pickled]


def _end_of_process(order: Begin) -> None:
    """Do what the code sees of the end of its process. A broken group of ranks would wait."""
    if not order.has_ranks:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def _ignore_notices() -> None:
    """Leave it to the worker, which gets them too, what a notice to end means for the trial. What
    the code starts or forks ends by them as usual."""
    notices = (signal.SIGTERM, signal.SIGINT)
    masks: list[set[int]] = []

    def ignore(number: int, frame: object) -> None:
        pass

    def block() -> None:
        masks.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, notices)))

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop())

    def reset() -> None:
        for number in notices:
            if signal.getsignal(number) is ignore:
                signal.signal(number, signal.SIG_DFL)
        unblock()

    for number in notices:
        signal.signal(number, ignore)
    os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=reset)


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main(handle: int, worker: int) -> None:
    """Train for a worker, by its number, at the other end of a pipe."""
    os.set_inheritable(handle, False)
    _die_with(worker)
    _ignore_notices()
    sys.argv = [""]
    Child(Connection(handle)).serve()
