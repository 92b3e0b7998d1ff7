"""Runs of training functions, and what they report."""

import threading
from multiprocessing import Pipe

import pytest

from trials import tasks
from trials.checkpoints.folders import folder_at
from trials.contract import Budget, Setup, TrainingFailed, Unit
from trials.tasks.function.child import Line, attend
from trials.tasks.function.messages import Closed
from trials.tasks.function.run import FunctionRun


class Thread:
    """In place of a `TrainingProcess` and its `Processes`: the function of a test runs in a thread,
    where the test sees what it does."""

    def __init__(self, function, setup, params):
        self.connection, self._theirs = Pipe()
        self._call = function, setup, params
        self.is_killed = False

    def begin(self, order):
        threading.Thread(target=self._train, daemon=True).start()

    def _train(self):
        function, setup, params = self._call
        attend(Line(self._theirs), setup, function, params)
        self._theirs.send(Closed(goes_on=False))

    def say(self, message):
        self.connection.send(message)

    def hear(self, timeout_s):
        return self.connection.recv() if self.connection.poll(timeout_s) else None

    def kill(self):
        self.is_killed = True

    def take(self):
        return self

    def give_back(self, process, *, goes_on):
        pass


def setup_in(tmp_path, total=3.0, **changes):
    levels = (*map(float, range(1, int(total))), total)
    budget = Budget(Unit.EPOCHS, total, levels)
    return Setup(
        **{"params": {}, "seed": 1, "budget": budget, "folder": tmp_path / "trial", **changes}
    )


def run_in_thread(function, setup, grace_s=5.0, params=None):
    return FunctionRun(Thread(function, setup, params or {}), None, grace_s)


class TaskInThread:
    """A `FunctionTask` whose functions run in threads of this process."""

    metrics = settings = None

    def __init__(self, task):
        self._task = task

    def start(self, setup, data):
        params = {**self._task.args, **setup.params}
        return run_in_thread(self._task.function, setup, params=params)


def run_of(function, tmp_path, grace_s=5.0, **changes):
    return run_in_thread(function, setup_in(tmp_path, **changes), grace_s)


def raises_in_training(what):
    """A context in which training code raises an error that says this."""
    return pytest.raises(TrainingFailed, match=what)


def items_of(run):
    """What a run says, without the turns in which its function says nothing."""
    return (item for item in run if item is not None)


def reports_of(run):
    return list(items_of(run))


def problem_of(kind, base):
    (problem,) = tasks.inspect({"kind": kind}, base)
    assert problem.where == "task.kind"
    return problem.what


def names_in(folder):
    """All names in a folder, or behind a URL."""
    return sorted(folder_at(folder).entries())


def reporting(*reports, save=True):
    """A function that reports these metrics, one after the other."""

    def train(params, trial):
        done = int((trial.checkpoint / "done").read_text()) if trial.checkpoint else 0
        for epoch, metrics in enumerate(reports[done:], start=done + 1):
            if save:
                with trial.save() as folder:
                    (folder / "done").write_text(str(epoch))
            trial.report(epoch, metrics)

    return train
