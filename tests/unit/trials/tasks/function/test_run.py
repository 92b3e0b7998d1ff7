"""Training functions of the user's own: how they are found, driven, stopped and continued."""

from __future__ import annotations

import argparse
import errno
import itertools
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from trials import tasks
from trials.checkpoints import checkpoints
from trials.checkpoints.checkpoint_folder import TEMPORARY, order_of
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.folders import folder_at, inside, split
from trials.checkpoints.manifests import verify
from trials.checkpoints.store_folder import UPLOAD
from trials.checkpoints.trimming import trim_ended
from trials.contract import Budget, Diagnosed, Goal, Note, Setup, TrialStopped, Unit
from trials.running.runner import Runner
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


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module into the study file's folder; gone with its name after the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(text, name="their_training"):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return tmp_path

    yield write
    sys.modules.pop("their_training", None)


def problem_of(kind, base):
    (problem,) = tasks.inspect({"kind": kind}, base)
    assert problem.where == "task.kind"
    return problem.what


# --------------------------------------------------------------------------------------------------
# driving


def test_reports_come_out_in_order_and_the_run_finishes_at_its_budget(tmp_path):
    def train(params, trial):
        for epoch in range(trial.budget):
            trial.report(epoch + 1, {"a": np.float32(0.5), "b": torch.tensor(2.0), "c": 1})

    run = run_of(train, tmp_path)
    reports = reports_of(run)
    assert [r.resource for r in reports] == [1.0, 2.0, 3.0]
    assert reports[0].metrics == {"a": 0.5, "b": 2.0, "c": 1.0}
    assert run.finished == "budget used"
    run.close()


def test_a_function_that_returns_early_has_finished(tmp_path):
    run = run_of(lambda params, trial: trial.report(1, {"a": 1}), tmp_path)
    assert len(reports_of(run)) == 1
    assert run.finished == "the function returned"


def test_the_handle_tells_what_the_trial_is_given(tmp_path):
    seen = {}

    def train(params, trial):
        seen.update(
            params=params,
            **{name: getattr(trial, name) for name in ("seed", "budget", "device", "folder")},
        )

    list(run_of(train, tmp_path, total=2.5))
    assert seen == {
        "params": {},
        "seed": 1,
        "budget": 2.5,
        "device": "cpu",
        "folder": tmp_path / "trial",
    }


def test_the_function_trains_on_only_when_it_is_asked_to(tmp_path):
    steps = []

    def train(params, trial):
        for epoch in range(1, 4):
            steps.append(epoch)
            trial.report(epoch, {})

    run = items_of(run_of(train, tmp_path))
    assert steps == []
    next(run)
    assert steps == [1]
    next(run)
    assert steps == [1, 2]


def test_control_comes_back_while_the_function_takes_its_time(tmp_path):
    go = threading.Event()

    def train(params, trial):
        go.wait()
        trial.report(1, {})

    run = run_of(train, tmp_path)
    items = iter(run)
    assert next(items) is None
    go.set()
    assert next(item for item in items if item is not None).resource == 1.0
    run.close()


def test_an_exception_comes_out_with_its_traceback(tmp_path):
    def train(params, trial):
        trial.report(1, {})
        raise KeyError("their own mistake")

    run = run_of(train, tmp_path)
    items = items_of(run)
    next(items)
    with pytest.raises(KeyError, match="their own mistake") as caught:
        next(items)
    assert caught.traceback[-1].name == "train"
    run.close()


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([(2, {}), (2, {})], r"trial\.report\(2\) after 2: the resource must rise"),
        ([(2, {}), (1, {})], r"trial\.report\(1\) after 2: the resource must rise"),
        ([(float("nan"), {})], "the resource must rise"),
        ([(-1, {})], "the resource must rise"),
        (
            [(float("inf"), {})],
            r"trial\.report\(inf\): the resource must say how far the trial has trained",
        ),
        ([(1e308, {})], "the resource must say how far the trial has trained"),
        ([(10**400, {})], "resource is too large for a float"),
        ([("far", {})], "resource must be a number, not 'far'"),
        ([("1", {})], "resource must be a number, not '1'"),
        ([(1, {"a": "high"})], "metric 'a' must be a number, not 'high'"),
        ([(1, {"a": "0.5"})], "metric 'a' must be a number, not '0.5'"),
        ([(1, {"a": b"0.5"})], "metric 'a' must be a number, not b'0.5'"),
        ([(1, {"a": np.array("0.5")})], "metric 'a' must be a number, not array"),
        ([(1, {"$loss": 1.0})], r"a metric cannot be named '\$loss'"),
        ([(1, {"": 1.0})], "a metric cannot be named ''"),
        ([(1, {"a\nb": 1.0})], "a metric cannot be named"),
        ([(1, {"\ud800": 1.0})], "a metric cannot be named"),
        ([(1, {"a": 10**400})], "metric 'a' is too large for a float"),
    ],
)
def test_a_wrong_report_says_what_is_wrong(tmp_path, calls, said):
    def train(params, trial):
        for resource, metrics in calls:
            trial.report(resource, metrics)

    with pytest.raises(ValueError, match=said):
        list(run_of(train, tmp_path))


def test_sys_exit_is_an_error_unless_all_is_well(tmp_path):
    with pytest.raises(RuntimeError, match=r"called sys\.exit\(3\)"):
        list(run_of(lambda params, trial: sys.exit(3), tmp_path))
    run = run_of(lambda params, trial: sys.exit(), tmp_path)
    assert list(run) == []
    assert run.finished == "the function returned"


# --------------------------------------------------------------------------------------------------
# stopping


def test_a_closed_run_raises_trial_stopped_and_finally_blocks_run(tmp_path):
    seen = []

    def train(params, trial):
        try:
            trial.report(1, {})
        except Exception:  # noqa: BLE001 - what careless training code does
            seen.append("caught")
        finally:
            seen.append("cleaned up")

    run = run_of(train, tmp_path)
    next(items_of(run))
    run.close()
    assert seen == ["cleaned up"]


def test_a_closed_run_is_not_iterated_further(tmp_path):
    run = run_of(lambda params, trial: trial.report(1, {}), tmp_path)
    items = items_of(run)
    next(items)
    run.close()
    run.close()
    assert list(items) == []
    assert list(run) == []


def test_a_run_that_never_began_closes(tmp_path):
    run = run_of(lambda params, trial: pytest.fail("was called"), tmp_path)
    run.close()
    assert list(run) == []


def test_closing_does_not_hang_on_a_function_that_never_reports_again(tmp_path, caplog):
    end, stopped = threading.Event(), threading.Event()

    def train(params, trial):
        trial.report(1, {})
        end.wait()
        try:
            trial.report(2, {})
        except TrialStopped:
            stopped.set()
            raise

    run = run_of(train, tmp_path, grace_s=0.01)
    next(items_of(run))
    next(iter(run))
    run.close()
    assert "continues in the background until its next trial.report" in caplog.text
    end.set()
    assert stopped.wait(10)


def test_closing_does_not_hang_on_a_function_that_will_not_stop(tmp_path, caplog):
    end = threading.Event()

    def train(params, trial):
        try:
            trial.report(1, {})
        except TrialStopped:
            end.wait()

    run = run_of(train, tmp_path, grace_s=0.01)
    next(items_of(run))
    run.close()
    assert "continues in the background" in caplog.text
    end.set()


# ------------------------------------------------------------------------------------------------
# continuing


def counting(params, trial):
    done = int((trial.checkpoint / "done").read_text()) if trial.checkpoint else 0
    for epoch in range(done + 1, trial.budget + 1):
        with trial.save() as folder:
            (folder / "done").write_text(str(epoch))
        trial.report(epoch, {"epoch": epoch})


def test_a_saved_checkpoint_belongs_to_the_report_that_follows_and_is_continued_from(tmp_path):
    first = run_of(counting, tmp_path, total=4.0)
    items = items_of(first)
    reports = [next(items), next(items)]
    saved = first.save()
    assert saved == reports[1].checkpoint
    assert (saved / "done").read_text() == "2"
    first.close()
    second = run_of(counting, tmp_path, total=4.0, resume_from=saved)
    rest = reports_of(second)
    assert [r.resource for r in rest] == [3.0, 4.0]
    assert rest[0].elapsed > json.loads((saved / ".elapsed.json").read_text()) > 0
    second.close()


def test_a_damaged_checkpoint_gives_the_one_before(tmp_path):
    reports = reports_of(run_of(counting, tmp_path))
    (reports[-1].checkpoint / "done").write_text("7")
    again = run_of(counting, tmp_path, resume_from=tmp_path / "trial" / "last")
    assert [r.resource for r in reports_of(again)] == [3.0]


def test_nothing_is_saved_for_a_report_without_a_checkpoint(tmp_path):
    run = run_of(lambda params, trial: trial.report(1, {}), tmp_path)
    report = next(items_of(run))
    assert report.checkpoint is None
    assert run.save() is None
    run.close()


def test_a_save_that_fails_leaves_the_one_before(tmp_path):
    def train(params, trial):
        save(trial, "good")
        with suppress(OSError), trial.save() as folder:
            (folder / "state").write_text("half")
            raise OSError("disk full")
        trial.report(1, {})
        with trial.save():
            raise OSError("disk full")

    run = run_of(train, tmp_path)
    items = items_of(run)
    assert (next(items).checkpoint / "state").read_text() == "good"
    with pytest.raises(OSError, match="disk full"):
        next(items)
    run.close()
    assert names_in(tmp_path / "trial") == ["epoch-1", "last"]


# -------------------------------------------------------------------------- names of checkpoints


def save(trial, text):
    with trial.save() as folder:
        (folder / "state").write_text(text)


def names_in(folder):
    """All names in a folder, or behind a URL."""
    return sorted(folder_at(folder).entries())


@pytest.fixture(params=["path", "url"])
def home(request, tmp_path):
    """The trial's folder."""
    if request.param == "path":
        return tmp_path / "trial"
    return f"memory://{tmp_path.name}/trial"


def test_checkpoints_have_the_names_of_the_levels_of_their_reports(tmp_path, home):
    def train(params, trial):
        done = int((trial.checkpoint / "state").read_text()) if trial.checkpoint else 0
        for step in range(done + 100, trial.budget + 1, 100):
            save(trial, str(step))
            trial.report(step, {})

    more = {"folder": home, "budget": Budget(Unit.STEPS, 1000.0, (1000.0,))}
    run = run_of(train, tmp_path, **more)
    reports = reports_of(run)
    run.close()
    steps = range(100, 1001, 100)
    assert [report.checkpoint for report in reports] == [inside(home, f"step-{n}") for n in steps]
    assert folder_at(home).checkpoints() == [f"step-{n}" for n in steps], "by number, not by letter"
    again = run_of(train, tmp_path, resume_from=inside(home, "step-800"), **more)
    names = [split(report.checkpoint)[1] for report in reports_of(again)]
    again.close()
    assert names == ["step-900-2", "step-1000-2"]
    assert split(Checkpoints(home).last)[1] == "step-1000-2"


def test_levels_may_be_fractions(tmp_path, home):
    def train(params, trial):
        for epoch in (1e-05, 0.5, 2.0, 10, 2.0**53):
            save(trial, str(epoch))
            trial.report(epoch, {})

    run = run_of(train, tmp_path, folder=home, budget=Budget(Unit.EPOCHS, 2.0**53, (2.0**53,)))
    names = [split(report.checkpoint)[1] for report in reports_of(run)]
    run.close()
    assert names == ["epoch-1e-05", "epoch-0.5", "epoch-2", "epoch-10", f"epoch-{2**53}"]
    assert folder_at(home).checkpoints() == names
    assert order_of("epoch-1e-05") < order_of("epoch-1e-05-2") < order_of("epoch-0.5")


def test_of_two_saves_before_a_report_the_second_counts(tmp_path, home):
    def train(params, trial):
        save(trial, "first")
        save(trial, "second")
        seen.append(trial.saved)
        trial.report(1, {})
        seen.append(trial.saved)
        trial.report(2, {})
        seen.append(trial.saved)

    seen = []
    run = run_of(train, tmp_path, folder=home)
    first, second = reports_of(run)
    run.close()
    assert second.checkpoint is None
    assert seen == [None, first.checkpoint, first.checkpoint]
    assert names_in(home) == ["epoch-1", "last"]
    with opened(first.checkpoint) as checkpoint:
        assert (checkpoint.files / "state").read_text() == "second"


@pytest.mark.parametrize("stops", [False, True])
def test_a_save_without_a_report_leaves_nothing(tmp_path, home, stops, monkeypatch):
    def train(params, trial):
        save(trial, "reported")
        trial.report(1, {})
        save(trial, "not reported")
        while stops:
            trial.note(Note())

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = run_of(train, tmp_path, folder=home)
    for item in run:
        if stops and isinstance(item, Note):
            break
    run.close()
    assert names_in(home) == ["epoch-1", "last"]
    assert not list(tmp_path.glob(f"{UPLOAD}*"))


def test_what_a_killed_process_has_saved_without_a_report_is_removed_by_the_next(tmp_path):
    lines = (
        "import os, sys",
        "from pathlib import Path",
        "from trials.contract import Budget, Setup, Unit",
        "from trials.tasks.function.run import FunctionRun",
        "def train(params, trial):",
        "    with trial.save() as folder: (folder / 'state').touch()",
        "    os.kill(os.getpid(), 9)",
        "budget = Budget(Unit.EPOCHS, 1.0, (1.0,))",
        "setup = Setup({}, 1, budget, Path(sys.argv[1]) / 'trial')",
        "list(FunctionRun(train, {}, setup))",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines), str(tmp_path)], check=False)
    (left,) = names_in(tmp_path / "trial")
    assert left.startswith(TEMPORARY)
    run = run_of(reporting({}), tmp_path)
    reports_of(run)
    run.close()
    assert names_in(tmp_path / "trial") == ["epoch-1", "last"]


def test_a_disk_that_is_full_when_a_checkpoint_gets_its_name_is_told(tmp_path, monkeypatch):
    def train(params, trial):
        save(trial, "state")
        usage = shutil.disk_usage(tmp_path)._replace(free=0)
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
        monkeypatch.setattr(checkpoints, "seal", fails)
        trial.report(1, {})

    def fails(*args, **more):
        raise RuntimeError("file write failed")

    run = run_of(train, tmp_path)
    with pytest.raises(OSError) as caught:
        reports_of(run)
    run.close()
    assert caught.value.errno == errno.ENOSPC
    assert names_in(tmp_path / "trial") == []


# ---------------------------------------------------------------------------------------- health,
# and the best


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


def found(tmp_path, *reports):
    run = run_of(reporting(*reports, save=False), tmp_path, total=float(len(reports)))
    reports_of(run)
    assert isinstance(run, Diagnosed)
    return {finding.name: finding.evidence for finding in run.findings()}


def test_a_function_is_told_what_its_reports_show(tmp_path):
    rising = [{"train_loss": 1 / n, "val_loss": abs(n - 4) + 1.0} for n in range(1, 10)]
    assert (
        "since report 4 the validation loss rose from 1 to 6"
        in found(tmp_path, *rising)["overfitting"]
    )
    flat = [{"accuracy": 0.5, "loss": 0.7}] * 8
    assert (
        found(tmp_path, *flat)["plateau"]
        == "the validation loss was 0.7 by report 1, and 0.7 at best after"
    )
    broken = [{"train_loss": 1.0}, {"train_loss": float("nan")}]
    assert found(tmp_path, *broken)["divergence"] == "the training loss became nan at report 2"


def test_what_a_function_does_not_always_report_is_not_judged(tmp_path):
    assert found(tmp_path, *[{"accuracy": 0.1}] * 30) == {}
    assert found(tmp_path, *[{"loss": 0.7}] * 7, {"accuracy": 0.1}) == {}


def test_the_history_goes_on_in_the_next_attempt(tmp_path):
    reports = [{"train_loss": 1 / n, "loss": abs(n - 3) + 1.0} for n in range(1, 12)]
    first = run_of(reporting(*reports), tmp_path, total=11.0)
    items = items_of(first)
    saved = [next(items) for _ in range(6)][-1].checkpoint
    first.close()
    second = run_of(reporting(*reports), tmp_path, total=11.0, resume_from=saved)
    reports_of(second)
    (finding,) = second.findings()
    assert "since report 3 the validation loss rose from 1 to 9" in finding.evidence
    second.close()


ACCURACIES = [{"accuracy": value} for value in (0.1, 0.9, 0.3, 0.4, 0.5, 0.6)]


@pytest.mark.parametrize(("maximize", "best"), [(True, 2), (False, 1)])
def test_the_best_checkpoint_by_the_objective_stays(tmp_path, maximize, best):
    run = run_of(reporting(*ACCURACIES), tmp_path, total=6.0, goal=Goal("accuracy", maximize))
    for report in reports_of(run):
        run.recorded(report.resource)
    run.close()
    checkpoints = Checkpoints(tmp_path / "trial")
    assert (checkpoints.best / "done").read_text() == str(best)
    verify(checkpoints.best)
    assert sorted(path.name for path in (tmp_path / "trial").glob("epoch-*")) == [
        f"epoch-{number}" for number in (best, 5, 6)
    ]


def test_of_a_trial_that_has_ended_the_files_that_only_continue_it_are_removed(tmp_path):
    def train(params, trial):
        with trial.save(state=["optimizer", "not_written"]) as folder:
            (folder / "optimizer").write_text("moments")
            (folder / "model").write_text("weights")
        trial.report(1, {"accuracy": 1.0})

    run = run_of(train, tmp_path, goal=Goal("accuracy", maximize=True))
    (report,) = reports_of(run)
    run.close()
    verify(report.checkpoint, whole=True)
    trim_ended(report.checkpoint)
    verify(report.checkpoint)
    assert (report.checkpoint / "model").is_file()
    assert not (report.checkpoint / "optimizer").exists()


def test_a_best_that_is_surpassed_stays_until_the_better_one_is_on_record(tmp_path):
    reports = [{"accuracy": value} for value in (0.9, 0.1, 0.2, 0.3, 0.95)]
    run = run_of(reporting(*reports), tmp_path, total=5.0, goal=Goal("accuracy", maximize=True))
    told = reports_of(run)
    run.recorded(4.0)
    assert told[0].checkpoint.is_dir()
    run.recorded(5.0)
    assert not told[0].checkpoint.is_dir()
    assert Checkpoints(tmp_path / "trial").best == told[4].checkpoint


@pytest.mark.parametrize("place", ["path", "url"])
def test_the_best_of_an_earlier_attempt_counts_in_the_next(tmp_path, place):
    folder = tmp_path / "trial" if place == "path" else f"memory://{tmp_path.name}/trial"
    more = {"total": 6.0, "goal": Goal("accuracy", maximize=True), "folder": folder}
    first = run_of(reporting(*ACCURACIES), tmp_path, **more)
    items = items_of(first)
    reports = [next(items) for _ in range(3)]
    first.close()
    second = run_of(reporting(*ACCURACIES), tmp_path, resume_from=reports[-1].checkpoint, **more)
    reports_of(second)
    second.close()
    assert Checkpoints(folder).best == reports[1].checkpoint


def test_a_best_that_the_attempt_it_continues_knew_nothing_of_does_not_count(tmp_path):
    more = {"total": 2.0, "goal": Goal("accuracy", maximize=True)}
    first = reports_of(run_of(reporting(*ACCURACIES[:2]), tmp_path, **more))
    worse = [ACCURACIES[0], {"accuracy": 0.2}]
    again = reports_of(run_of(reporting(*worse), tmp_path, resume_from=first[0].checkpoint, **more))
    assert Checkpoints(tmp_path / "trial").best == again[0].checkpoint


def test_a_best_that_is_damaged_does_not_count_in_the_next_attempt(tmp_path):
    more = {"total": 4.0, "goal": Goal("accuracy", maximize=True)}
    rising = [{"accuracy": value} for value in (0.1, 0.2, 0.9)]
    first = reports_of(run_of(reporting(*rising), tmp_path, **more))
    (first[2].checkpoint / "done").write_text("damaged")
    worse = [*rising[:2], {"accuracy": 0.4}, {"accuracy": 0.3}]
    run = run_of(reporting(*worse), tmp_path, resume_from=first[2].checkpoint, **more)
    again = reports_of(run)
    assert [report.resource for report in again] == [3.0, 4.0]
    assert [report.best for report in again] == [again[0].checkpoint] * 2
    verify(Checkpoints(tmp_path / "trial").best)


def test_where_no_better_one_follows_a_damaged_best_the_one_before_it_is_the_best(tmp_path):
    more = {"total": 4.0, "goal": Goal("accuracy", maximize=True)}
    rising = [{"accuracy": value} for value in (0.1, 0.2, 0.9)]
    first = reports_of(run_of(reporting(*rising), tmp_path, **more))
    (first[2].checkpoint / "done").write_text("damaged")
    worse = [*rising[:2], {"accuracy": 0.15}, {"accuracy": 0.1}]
    reports_of(run_of(reporting(*worse), tmp_path, resume_from=first[2].checkpoint, **more))
    assert Checkpoints(tmp_path / "trial").best == first[1].checkpoint


# --------------------------------------------------------------------------------------------------
# finding


def test_a_function_is_found_in_the_study_files_folder_and_given_its_args(tmp_path, module):
    base = module("def train(params, trial):\n    trial.report(1, params)\n")
    task = tasks.load({"kind": "their_training:train", "args": {"a": 1, "b": 2}}, base)
    run = task.start(setup_in(tmp_path, params={"b": 3}), task.prepare({}))
    assert reports_of(run)[0].metrics == {"a": 1.0, "b": 3.0}
    assert pickle.loads(pickle.dumps(task)).start(setup_in(tmp_path), None).finished is None


def test_a_module_or_function_that_is_not_there_is_told(tmp_path, module):
    assert problem_of("nowhere.at_all:train", tmp_path) == (
        f"no module named 'nowhere'; it must be in {tmp_path} or be installed"
    )
    base = module("def train(params, trial): ...\nclass Train: ...\ndef bare(needed): ...\n")
    assert (
        problem_of("their_training:trian", base)
        == "their_training has no function 'trian'; did you mean train?"
    )
    assert "is not a function; write def Train(params, trial)" in problem_of(
        "their_training:Train", base
    )
    assert "bare(needed) cannot be called with (params, trial)" in problem_of(
        "their_training:bare", base
    )


def test_a_module_that_fails_on_import_is_told(tmp_path, module):
    base = module("import not_installed_anywhere\n")
    assert "No module named 'not_installed_anywhere'; fix the module" in problem_of(
        "their_training:train", base
    )
    base = module("1 / 0\n")
    assert "importing their_training failed: ZeroDivisionError" in problem_of(
        "their_training:train", base
    )


def test_an_unknown_key_of_a_function_task_is_told(tmp_path):
    (problem,) = tasks.inspect({"kind": "their_training:train", "arg": {}}, tmp_path)
    assert problem.where == "task.arg"
    assert "did you mean args?" in problem.what


# --------------------------------------------------------------------------------------------------
# examples


def test_the_digits_example_learns_and_continues(tmp_path):
    examples = Path(__file__).parents[5] / "examples"
    task = tasks.load({"kind": "digits:train"}, examples)
    params = {"width": 64, "dropout": 0.1, "learning_rate": 1e-2, "batch_size": 64}
    first = Runner(task, None, setup_in(tmp_path, total=4.0, params=params))
    reports = list(first.advance(until=2.0))
    saved = first.save()
    first.close()
    assert [r.resource for r in reports] == [1.0, 2.0]
    second = Runner(task, None, setup_in(tmp_path, total=4.0, params=params, resume_from=saved))
    reports = list(second.advance(until=4.0))
    assert [r.resource for r in reports] == [3.0, 4.0]
    assert reports[-1].metrics["accuracy"] > 0.9
    second.close()


# -------------------------------------------------------------------------- after the last report


def test_what_follows_the_last_report_runs_and_its_metrics_are_noted(tmp_path):
    def train(params, trial):
        trial.report(3, {"loss": 0.5})
        trial.report(3, {"test_loss": 0.6})
        (tmp_path / "model").touch()
        return {"test_accuracy": np.float32(0.5), "name": "a"}

    run = run_of(train, tmp_path)
    report, *notes = reports_of(run)
    assert report.metrics == {"loss": 0.5}
    assert [note.metrics for note in notes] == [{"test_loss": 0.6}, {"test_accuracy": 0.5}]
    assert (run.finished, (tmp_path / "model").exists()) == ("budget used", True)


def test_more_training_than_the_budget_ends_at_its_report(tmp_path):
    def train(params, trial):
        for epoch in itertools.count(1):
            trial.report(epoch, {})

    run = run_of(train, tmp_path)
    assert [report.resource for report in reports_of(run)] == [1, 2, 3]
    assert run.finished == "budget used"


def test_returned_metrics_are_the_report_of_a_function_that_makes_none(tmp_path):
    (report,) = reports_of(run_of(lambda params, trial: {"accuracy": 1}, tmp_path))
    assert (report.resource, report.metrics) == (3.0, {"accuracy": 1.0})


# ------------------------------------------------------------------------------------- as scripts


SCRIPT = """
import argparse
from trials.script import trial

def main(rate=0.5, epochs=2, seed=0):
    for epoch in range(1, epochs + 1):
        with trial.save() as folder:
            (folder / "epoch").write_text(str(epoch))
        trial.report(epoch, {"rate": rate, "seed": seed})
    return epochs, rate, trial.checkpoint

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    print(main(arguments.rate, arguments.epochs))
"""


def test_a_script_that_is_started_by_hand_runs_as_it_says(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py", "--rate", "0.25"]
    environment = {**os.environ, "PYTHONPATH": str(Path(tasks.__file__).parents[2])}
    said = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout == "(1, 0.25, None)\n"
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_a_script_in_a_folder_finds_what_lies_beside_it(tmp_path, module):
    base = module("")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "beside_it.py").write_text("LOSS = 0.5")
    lines = (
        "import beside_it",
        "from trials.script import trial",
        "trial.report(3, {'loss': beside_it.LOSS})",
    )
    (tmp_path / "scripts" / "theirs.py").write_text("\n".join(lines))
    task = tasks.load({"kind": "scripts.theirs:__main__"}, base)
    (report,) = reports_of(task.start(setup_in(tmp_path), None))
    assert report.metrics == {"loss": 0.5}


def test_a_script_that_trains_while_it_is_imported_is_refused_and_runs_as_a_whole_file(
    tmp_path, module
):
    base = module(
        "from trials.script import trial\ntrial.report(3, {'rate': trial.get('rate', 1)})\n"
    )
    said = problem_of("their_training:main", base)
    assert "it asks for its trial while it is imported: write kind: their_training:__main__" in said
    task = tasks.load({"kind": "their_training:__main__"}, base)
    run = task.start(setup_in(tmp_path, params={"rate": 0.1}), None)
    assert [report.metrics for report in reports_of(run)] == [{"rate": 0.1}]


def test_a_script_in_a_trial_has_its_parameters_and_budget(tmp_path, module):
    base = module(SCRIPT)
    task = tasks.load({"kind": "their_training:__main__"}, base)
    before = list(sys.argv), argparse.ArgumentParser.parse_known_args
    reports = reports_of(task.start(setup_in(tmp_path, params={"rate": 0.1}), None))
    assert [report.metrics["rate"] for report in reports] == [0.1, 0.1, 0.1]
    assert reports[-1].checkpoint is not None
    assert (sys.argv, argparse.ArgumentParser.parse_known_args) == before
    unused = task.start(setup_in(tmp_path, params={"rate": 0.1, "width": 3}), None)
    with pytest.raises(ValueError, match="has not read width of the study file"):
        reports_of(unused)
