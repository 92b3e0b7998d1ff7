"""Runs of training functions, and what they report."""

from trials import tasks
from trials.checkpoints.folders import folder_at
from trials.contract import Budget, Setup, Unit
from trials.tasks.function.run import FunctionRun


def setup_in(tmp_path, total=3.0, **changes):
    levels = (*map(float, range(1, int(total))), total)
    budget = Budget(Unit.EPOCHS, total, levels)
    return Setup(
        **{"params": {}, "seed": 1, "budget": budget, "folder": tmp_path / "trial", **changes}
    )


def run_of(function, tmp_path, grace_s=5.0, **changes):
    return FunctionRun(function, {}, setup_in(tmp_path, **changes), grace_s)


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
