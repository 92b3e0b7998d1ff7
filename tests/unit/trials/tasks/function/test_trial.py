"""A trial as its function sees it: reports, checkpoints and their names."""

import json
import shutil
import tempfile
from contextlib import suppress

import numpy as np
import pytest

from support.running.function_runs import (
    items_of,
    names_in,
    raises_in_training,
    reporting,
    reports_of,
    run_of,
    setup_in,
)
from trials import tasks
from trials.checkpoints import checkpoints
from trials.checkpoints.checkpoint_folder import TEMPORARY, order_of
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.folders import folder_at, inside, split
from trials.checkpoints.store_folder import UPLOAD
from trials.contract import Budget, Note, ProcessEnded, Unit


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


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([(2, {}), (2, {})], r"trial\.report\(2\) after 2: the resource must rise"),
        ([(2, {}), (1, {})], r"trial\.report\(1\) after 2: the resource must rise"),
        ([(float("nan"), {})], "resource nan is not finite"),
        ([(-1, {})], "the resource must rise"),
        ([(float("inf"), {})], "resource inf is not finite: it must say how far"),
        ([(3, {}), (float("inf"), {})], "resource inf is not finite"),
        ([(1e308, {})], r"resource 1e\+308 is above 2\*\*53"),
        ([(10**400, {})], "resource is too large for a float"),
        ([("far", {})], "resource must be a number, not 'far'"),
        ([(1, {"a": "high"})], "metric 'a' must be a number, not 'high'"),
        ([(1, {"$loss": 1.0})], r"a metric cannot be named '\$loss'"),
        ([(1, {"": 1.0})], "a metric cannot be named ''"),
        ([(1, {"a\nb": 1.0})], "a metric cannot be named"),
        ([(1, {"a" * 501: 1.0})], "the name of a metric has 501 letters, at most 500"),
        ([(1, {"\ud800": 1.0})], "a metric cannot be named"),
        ([(1, {"a": 10**400})], "metric 'a' is too large for a float"),
    ],
)
def test_a_wrong_report_says_what_is_wrong(tmp_path, calls, said):
    def train(params, trial):
        for resource, metrics in calls:
            trial.report(resource, metrics)

    with raises_in_training(said):
        list(run_of(train, tmp_path))


def test_a_saved_checkpoint_belongs_to_the_report_that_follows_and_is_continued_from(tmp_path):
    first = run_of(reporting({}, {}, {}, {}), tmp_path, total=4.0)
    items = items_of(first)
    reports = [next(items), next(items)]
    saved = first.save()
    assert saved == reports[1].checkpoint
    assert (saved / "done").read_text() == "2"
    first.close()
    second = run_of(reporting({}, {}, {}, {}), tmp_path, total=4.0, resume_from=saved)
    rest = reports_of(second)
    assert [r.resource for r in rest] == [3.0, 4.0]
    assert rest[0].elapsed > json.loads((saved / ".elapsed.json").read_text()) > 0
    second.close()


def test_a_damaged_checkpoint_gives_the_one_before(tmp_path):
    reports = reports_of(run_of(reporting({}, {}, {}), tmp_path))
    (reports[-1].checkpoint / "done").write_text("7")
    again = run_of(reporting({}, {}, {}), tmp_path, resume_from=tmp_path / "trial" / "last")
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
    with raises_in_training("disk full"):
        next(items)
    run.close()
    assert names_in(tmp_path / "trial") == ["epoch-1", "last"]


def save(trial, text):
    with trial.save() as folder:
        (folder / "state").write_text(text)


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


def test_what_a_killed_process_has_saved_without_a_report_is_removed_by_the_next(tmp_path, module):
    lines = (
        "import os",
        "def train(params, trial):",
        "    with trial.save() as folder: (folder / 'state').touch()",
        "    os.kill(os.getpid(), 9)",
    )
    base = module("\n".join(lines))
    task = tasks.load({"kind": "their_training:train"}, base)
    with pytest.raises(ProcessEnded, match="SIGKILL"):
        list(task.start(setup_in(tmp_path), None))
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
    with raises_in_training("No space left on device") as caught:
        reports_of(run)
    run.close()
    assert caught.value.failure.kind == "disk_full"
    assert names_in(tmp_path / "trial") == []


def test_a_report_may_have_the_results_of_all_samples(tmp_path):
    def train(params, trial):
        trial.report(1, {"accuracy": 0.5, "samples": np.array([True, False])})

    (report, *_) = reports_of(run_of(train, tmp_path))
    assert dict(report.metrics) == {"accuracy": 0.5}
    assert report.samples == [1.0, 0.0]
