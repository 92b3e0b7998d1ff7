"""Trainables of Ray Tune as tasks: driven, paused, continued and refused as a study does it."""

import os
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hpsearch import tune
from hpsearch.errors import UserError
from hpsearch.plugins.ray_tune.adapting import adapt
from hpsearch.plugins.ray_tune.session import numbers_in
from hpsearch.running import loading
from support.running.function_runs import TaskInThread, raises_in_training
from trials.contract import Budget, Setup, TaskError, Unit
from trials.running.runner import Runner

KIND = f"{__name__}:trainable"


def setup_in(scratch, total=4, **changes):
    budget = Budget(Unit.STEPS, float(total), tuple(map(float, range(1, total + 1))))
    return Setup(
        **{
            "params": {"lr": 0.5, "model.width": 3},
            "seed": 1,
            "budget": budget,
            "folder": scratch / "trial-00007",
            "number": 7,
            **changes,
        }
    )


def run_of(found, scratch, args=None, **changes):
    """A run of a trainable, as a worker starts it."""
    function = adapt(found, {"kind": KIND, "args": args or {}})
    task = TaskInThread(SimpleNamespace(function=function, args=args or {}))
    return Runner(task, None, setup_in(scratch, **changes))


def metrics_of(runner, until=99.0):
    return [(report.resource, dict(report.metrics)) for report in runner.advance(until)]


def saving(config):
    """Counts as Ray Tune's guides show it: continues from a file, saves one with each report."""
    count = 0
    checkpoint = tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            count = int((Path(folder) / "count").read_text())
    while True:
        count += 1
        folder = Path(config["scratch"]) / "same-folder-each-time"
        folder.mkdir(exist_ok=True)
        (folder / "count").write_text(str(count))
        tune.report({"count": count}, checkpoint=tune.Checkpoint.from_directory(folder))
        (folder / "count").write_text("not the checkpoint any more")
        assert Path(tune.get_checkpoint(), "count").read_text() == str(count)


class Counting(tune.Trainable):
    """A class that keeps a dictionary."""

    log: list = []  # noqa: RUF012 - what happened, over all trials of a test

    def setup(self, config, start=0):
        self.log.append(("setup", dict(config)))
        self.count = start
        self.array = np.arange(3.0)

    def step(self):
        self.count += 1
        return {"count": self.count, "mine": self.iteration, "deep": {"er": 1}}

    def save_checkpoint(self, checkpoint_dir):
        return {"count": self.count, "array": self.array, "w": torch.ones(2), "f": np.float64(2)}

    def load_checkpoint(self, checkpoint):
        assert checkpoint["array"].tolist() == [0.0, 1.0, 2.0]
        self.count = checkpoint["count"]

    def cleanup(self):
        self.log.append(("cleanup", self.count))


@pytest.fixture(autouse=True)
def _nothing_logged():
    Counting.log.clear()


# --------------------------------------------------------------------------------------------------
# functions


def test_each_report_is_an_iteration_and_the_config_is_nested_again(tmp_path):
    seen = {}

    def train(config):
        seen.update(config)
        for _ in range(3):
            tune.report({"loss": torch.tensor(0.5), "eval": {"f1": np.float32(1)}, "note": "text"})

    runner = run_of(train, tmp_path, args={"model": {"depth": 2}, "_tune": {"tuples": ["sizes"]}},
                    params={"lr": 0.5, "model.width": 3, "sizes": [1, 2]})  # fmt: skip
    assert metrics_of(runner) == [(n, {"loss": 0.5, "eval/f1": 1.0}) for n in (1.0, 2.0, 3.0)]
    assert seen == {"lr": 0.5, "model": {"width": 3, "depth": 2}, "sizes": (1, 2)}
    assert runner.finished == "the function returned at 3 of 4 steps"


def test_a_paused_function_goes_on_from_the_folder_that_it_reported(tmp_path):
    params = {"scratch": str(tmp_path)}
    first = run_of(saving, tmp_path, params=params)
    assert metrics_of(first, until=2.0)[-1] == (2.0, {"count": 2.0})
    saved = first.save()
    first.close()
    second = run_of(saving, tmp_path, params=params, resume_from=saved)
    assert metrics_of(second) == [(3.0, {"count": 3.0}), (4.0, {"count": 4.0})]
    assert second.finished == "budget used"
    assert Path(saved, "checkpoint", "count").read_text() == "2", "a copy, not the user's folder"
    second.close()


def test_what_a_function_returns_or_yields_is_reported(tmp_path):
    def yields(config):
        yield {"a": 1}
        yield 2

    assert metrics_of(run_of(lambda config: {"a": 1}, tmp_path)) == [(1.0, {"a": 1.0})]
    assert metrics_of(run_of(lambda config: 3, tmp_path)) == [(1.0, {"_metric": 3.0})]
    assert metrics_of(run_of(yields, tmp_path)) == [(1.0, {"a": 1.0}), (2.0, {"_metric": 2.0})]


def test_done_ends_a_trial_and_what_follows_is_not_run(tmp_path):
    def train(config):
        tune.report({"a": 1})
        tune.report({"a": 2, "done": True})
        raise AssertionError

    assert len(metrics_of(run_of(train, tmp_path))) == 2


def test_the_context_and_other_threads_know_the_trial(tmp_path):
    found = []

    def train(config):
        context = tune.get_context()
        found.extend([context.get_trial_id(), context.get_trial_name()])
        thread = threading.Thread(target=lambda: found.append(tune.get_context().get_trial_dir()))
        thread.start()
        thread.join()
        tune.report({"a": 1})

    metrics_of(run_of(train, tmp_path))
    assert found == ["00007", "trial-00007", str(tmp_path / "trial-00007")]


def test_outside_of_a_trial_the_calls_say_so():
    for call in (lambda: tune.report({}), tune.get_checkpoint, tune.get_context):
        with pytest.raises(UserError, match="was called outside of a trial"):
            call()


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (lambda config: None, "has ended without a report"),
        (lambda config: "text", "returned 'text'"),
        (lambda config: tune.report(3), "takes a dict of metrics, not 3"),
        (lambda config: tune.report({"a": 1}, checkpoint="/not/there"), "which is not a folder"),
        (
            lambda config: tune.report({"a": 1}, checkpoint=3),
            "got the checkpoint 3, which is not a folder",
        ),
    ],
)
def test_a_mistake_of_a_trainable_fails_its_trial_with_what_to_do(tmp_path, train, message):
    with raises_in_training(message):
        metrics_of(run_of(train, tmp_path))


def test_checkpoints_in_a_store_are_brought_here(tmp_path):
    params, store = {"scratch": str(tmp_path)}, f"file://{tmp_path}/store/trial-00003"
    first = run_of(lambda config: saving_once(config, 1), tmp_path, params=params, folder=store)
    assert metrics_of(first, until=1.0) == [(1.0, {"count": 1.0})]
    saved = first.save()
    first.close()
    again = {"params": params, "folder": store, "resume_from": saved}
    second = run_of(lambda config: saving_once(config, 2), tmp_path, **again)
    assert metrics_of(second) == [(2.0, {"count": 2.0})]
    checkpoint = tune.Checkpoint(f"{saved}/checkpoint")
    copied = checkpoint.to_directory(tmp_path / "copied")
    assert Path(copied, "count").read_text() == "1"


def saving_once(config, expected):
    before = tune.get_checkpoint()
    count = 1
    if before is not None:
        with before.as_directory() as folder:
            count += int(Path(folder, "count").read_text())
    assert count == expected
    folder = Path(config["scratch"]) / "once"
    folder.mkdir(exist_ok=True)
    (folder / "count").write_text(str(count))
    tune.report({"count": count}, checkpoint=folder)


# --------------------------------------------------------------------------------------------------
# classes


def test_a_class_is_stepped_saved_and_continued(tmp_path):
    first = run_of(Counting, tmp_path, args={"_tune": {"parameters": {"start": 10}}})
    expected = [(n, {"count": 10 + n, "mine": n - 1, "deep/er": 1.0}) for n in (1.0, 2.0)]
    found = metrics_of(first, until=2.0)
    assert found == expected
    saved = first.save()
    first.close()
    assert Counting.log[-1] == ("cleanup", 12)
    second = run_of(Counting, tmp_path, resume_from=saved)
    (third, fourth) = metrics_of(second)
    assert (third[0], third[1]["count"], third[1]["mine"]) == (3.0, 13.0, 2.0)
    assert fourth[0] == 4.0
    second.close()


def test_a_dictionary_that_could_not_be_read_again_is_refused_at_once(tmp_path):
    class Odd(Counting):
        def save_checkpoint(self, checkpoint_dir):
            return {"path": threading.Event}

    with raises_in_training("more than tensors and plain values"):
        metrics_of(run_of(Odd, tmp_path))
    assert Odd.log[-1] == ("cleanup", 1)


def test_a_class_without_checkpoints_trains_from_the_start_again(tmp_path):
    class Bare(tune.Trainable):
        def step(self):
            return {"n": self.training_iteration, "done": self.iteration == 1}

    runner = run_of(Bare, tmp_path)
    assert [report[1]["n"] for report in metrics_of(runner)] == [0.0, 1.0]
    assert runner.save() is None


# --------------------------------------------------------------------------------------------------
# what is refused


class OfRay:
    """Stands for ray.tune.Trainable, which takes a second to import."""

    __module__ = "ray.tune.trainable.trainable"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (7, "is not a trainable"),
        (int, "is a class, but not a tune.Trainable"),
        (OfRay, "is a Trainable of ray; change its import to: from hpsearch import tune"),
        (lambda: None, r"cannot be called with \(config\)"),
        (tune.with_parameters(lambda config: None, data=1), r"called with \(config, data\)"),
        (tune.with_parameters(Counting, data=1), r"setup cannot be called with \(config, data\)"),
    ],
)
def test_what_is_not_a_trainable_is_refused_before_anything_runs(found, message):
    with pytest.raises(TaskError, match=message):
        adapt(found, {"kind": KIND})


def test_a_trainable_of_a_study_file_is_found_and_given_its_parameters(tmp_path, monkeypatch):
    text = (
        "from hpsearch import tune\n"
        "def plain(config, data): tune.report({'sum': config['lr'] + sum(data)})\n"
        "train = tune.with_parameters(plain, data=[1, 2])\n"
        "mine = [4]\n"
    )
    (tmp_path / "theirs_of_tune.py").write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path])
    part = {"kind": "theirs_of_tune:train", "library": "ray_tune"}
    assert loading.inspect(part, tmp_path) == []
    task = loading.load(part, tmp_path)
    assert metrics_of(Runner(task, None, setup_in(tmp_path))) == [(1.0, {"sum": 3.5})]
    part |= {"kind": "theirs_of_tune:plain", "args": {"_tune": {"globals": {"data": "mine"}}}}
    task = loading.load(part, tmp_path)
    assert metrics_of(Runner(task, None, setup_in(tmp_path))) == [(1.0, {"sum": 4.5})]
    part["args"]["_tune"]["globals"]["data"] = "yours"
    (problem,) = loading.inspect(part, tmp_path)
    assert "theirs_of_tune has no yours" in problem.what


def test_what_is_no_number_is_left_out():
    assert numbers_in({"a": True, "b": None, "c": [1], "done": True, "d": np.float64(2)}) == {
        "a": True,
        "d": 2.0,
    }


def test_rays_own_class_protocol_gives_the_same_results(tmp_path, monkeypatch):
    from ray.tune.trainable import trainable as of_ray

    monkeypatch.setattr(of_ray, "DEFAULT_STORAGE_PATH", str(tmp_path / "of_ray"))
    body = {name: value for name, value in vars(Counting).items() if not name.startswith("__")}
    theirs = type("Theirs", (of_ray.Trainable,), body)
    config = {"lr": 0.5}
    first = theirs(config)
    expected = [first.train() for _ in range(2)]
    folder = str(tmp_path / "saved")
    kept = first.save(folder)
    first.stop()
    second = theirs(config)
    second.restore(kept)
    expected += [second.train() for _ in range(2)]
    second.stop()
    told = list(Counting.log)
    Counting.log.clear()

    run = run_of(Counting, tmp_path, params=config)
    found = metrics_of(run, until=2.0)
    saved = run.save()
    run.close()
    run = run_of(Counting, tmp_path, params=config, resume_from=saved)
    found += metrics_of(run)
    run.close()
    for (resource, metrics), result in zip(found, expected, strict=True):
        assert resource == result["training_iteration"]
        theirs_alone = {name: result[name] for name in ("count", "mine")} | result["deep"]
        assert dict(zip(theirs_alone, metrics.values(), strict=True)) == theirs_alone
    assert Counting.log == told


def test_each_trial_runs_in_a_folder_of_its_own_and_finds_its_files_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def train(config):
        assert str(Path.cwd()) == tune.get_context().get_trial_dir()
        assert os.environ["TUNE_ORIG_WORKING_DIR"] == str(tmp_path)
        model = Path("my_model")
        had = model.read_text() if model.exists() else "nothing"
        model.write_text(str(config["lr"]))
        tune.report({"had": float(had) if had != "nothing" else 0.0})

    def had(number, lr):
        folder = tmp_path / f"trial-{number:05d}"
        params = {"lr": lr, "model.width": 3}
        run = run_of(train, tmp_path, number=number, folder=folder, params=params)
        ((_, metrics),) = metrics_of(run)
        run.close()
        assert Path.cwd() == tmp_path
        return metrics["had"]

    assert [had(1, 0.1), had(2, 0.2), had(1, 0.3)] == [0.0, 0.0, 0.1]
    assert "TUNE_ORIG_WORKING_DIR" not in os.environ


def test_a_class_runs_there_too_also_where_checkpoints_go_to_a_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    folders = []

    class Writes(tune.Trainable):
        def setup(self, config):
            folders.append(Path.cwd())

        def step(self):
            Path("steps").write_text("1")
            return {"a": 1.0, "done": True}

    for folder in (tmp_path / "trial-00007", "memory://studies/trial-00007"):
        metrics_of(run_of(Writes, tmp_path, folder=folder))
    local, temporary = folders
    assert local == tmp_path / "trial-00007"
    assert temporary.is_relative_to(tmp_path / "temporary")
    assert (local / "steps").exists()
    assert (temporary / "steps").exists()


def test_a_file_beside_the_script_is_said_to_be_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("x")

    def train(config):
        Path("data.csv").read_text()
        tune.report({"a": 1.0})

    with raises_in_training(r"data\.csv is in .* RAY_CHDIR_TO_TRIAL_DIR=0"):
        metrics_of(run_of(train, tmp_path))
    monkeypatch.setenv("RAY_CHDIR_TO_TRIAL_DIR", "0")
    assert len(metrics_of(run_of(train, tmp_path))) == 1


def test_a_trial_that_fails_leaves_its_folder_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def train(config):
        raise ValueError("no")

    with raises_in_training("no"):
        metrics_of(run_of(train, tmp_path))
    assert Path.cwd() == tmp_path
