"""A Tuner's studies in a real database, with workers in threads of this process."""

import math
import sys
from pathlib import Path

import pytest
import yaml

from hpsearch import tune
from hpsearch.errors import Interrupted, UserError
from hpsearch.plugins.ray_tune import tuner as tuners
from hpsearch.plugins.ray_tune.tuner import ResultGrid
from hpsearch.running import loading
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run import on_ray
from hpsearch.running.study_run.brain import build_study
from hpsearch.running.study_run.workers import worker_config
from hpsearch.store.leases import Lease
from hpsearch.study_file.reading import parse
from support.files import pages
from support.running.local_executor import LocalExecutor


def train(config, most=9):
    done = 0
    if tune.get_checkpoint() is not None:
        done = int(Path(tune.get_checkpoint(), "epoch").read_text())
    scratch = Path(config["scratch"]) / tune.get_context().get_trial_id()
    scratch.mkdir(exist_ok=True)
    for epoch in range(done + 1, most + 1):
        if config["x"] == 4:
            raise ValueError("four")
        (scratch / "epoch").write_text(str(epoch))
        loss = (config["x"] - 1) ** 2 + 1 / epoch
        checkpoint = tune.Checkpoint.from_directory(scratch)
        tune.report({"loss": loss, "deep": {"er": epoch}}, checkpoint=checkpoint)


def other(config):
    pass


@pytest.fixture
def here(monkeypatch):
    """Studies are driven without a cluster; says after how many ticks one is stopped."""
    stop = {"after": math.inf}

    def drive(store, run, open_history, watch, on_driver):
        history = open_history()
        lease: Lease = store.acquire(history.study.id, "driver", 1e9)
        runs_on = on_ray.environment(run.spec, "CPU")
        on_ray.prepare(store, history, run, lease, runs_on)
        study = build_study(history, run.spec)
        ticks = 0

        def count(study, changes, now):
            nonlocal ticks
            ticks += len(changes.reports)
            if ticks >= stop["after"]:
                driver.request_stop()
            watch(study, changes, now)

        executor = LocalExecutor(worker_config(run.spec, run.home.folder))
        driver = Driver(study, executor, store, lease, count)
        on_driver(driver)
        driver.run()
        store.release(lease)
        return history.study

    monkeypatch.setattr(tuners.on_ray, "drive", drive)
    monkeypatch.delenv("HPSEARCH_STORAGE", raising=False)
    return stop


def tuner_of(folder, samples=1, trainable=train, space=None):
    (folder / "scratch").mkdir(exist_ok=True)
    space = space or {"x": tune.grid_search([0, 1, 4]), "nest": {"y": tune.uniform(0, 1)}}
    return tune.Tuner(
        trainable,
        param_space={"scratch": str(folder / "scratch"), **space},
        tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=samples),
        run_config=tune.RunConfig(
            name="grid", storage_path=str(folder), stop={"training_iteration": 9}, verbose=0
        ),
    )


@pytest.mark.filterwarnings("ignore::hpsearch.plugins.ray_tune.tuner.NotCarriedOverWarning")
def test_a_study_is_run_interrupted_continued_extended_and_read(tmp_path, here):
    here["after"] = 2
    with pytest.raises(Interrupted, match="Continue with: running the script again"):
        tuner_of(tmp_path).fit()
    here["after"] = math.inf
    grid = tuner_of(tmp_path).fit()

    assert sorted(result.config["x"] for result in grid) == [0, 1, 4]
    best = grid.get_best_result()
    assert best.config["x"] == 1
    assert set(best.config) == {"scratch", "x", "nest"}
    full = next(result for result in grid if result.state == "complete")
    assert full.metrics["training_iteration"] == 9
    assert full.metrics["deep/er"] == 9
    assert list(full.metrics_dataframe["training_iteration"]) == list(range(1, 10))
    assert Path(full.checkpoint, "epoch").read_text() == "9"
    assert Path(best.path).is_dir()
    assert (grid.num_errors, len(grid)) == (1, 3)
    assert "ValueError: four" in str(grid.errors[0])

    again = tuner_of(tmp_path).fit()
    assert len(again) == 3, "it had ended"
    more = tuner_of(tmp_path, samples=2).fit()
    assert sorted(result.config["x"] for result in more) == [0, 0, 1, 1, 4, 4]
    with pytest.raises(UserError, match=r"exists with another .*space"):
        tuner_of(tmp_path, space={"x": tune.uniform(0, 1)}).fit()
    with pytest.raises(UserError, match="exists with another task"):
        tuner_of(tmp_path, trainable=other).fit()

    assert not tune.Tuner.can_restore(tmp_path / "grid")
    assert len(tuner_of(tmp_path, samples=2).get_results()) == 6
    read_as_ray_tune_does(more)


def train_by_session(config):
    for epoch in range(1, 10):
        assert tune.session.get_trial_id().isdigit()
        tune.session.report({"loss": (config["x"] - 1) ** 2 + 1 / epoch})


@pytest.mark.filterwarnings("ignore::hpsearch.plugins.ray_tune.tuner.NotCarriedOverWarning")
@pytest.mark.parametrize(
    "ends",
    [
        {"stop": {"training_iteration": 9}, "metric": "loss", "mode": "min"},
        {"scheduler": tune.schedulers.ASHAScheduler(metric="loss", mode="min", max_t=9)},
    ],
)
def test_a_script_that_calls_run_is_a_study_whose_trials_are_read_as_before(tmp_path, here, ends):
    analysis = tune.run(
        train_by_session,
        config={"x": tune.grid_search([0, 1, 4])},
        resources_per_trial={"cpu": 1},
        name="older",
        storage_path=str(tmp_path),
        verbose=0,
        callbacks=[],
        resume="AUTO",
        **ends,
    )
    best = analysis.best_trial
    assert (
        analysis.best_config == best.config == analysis.get_best_config("loss", "min") == {"x": 1}
    )
    assert analysis.get_best_config("loss", "max", scope="all") == {"x": 4}
    assert analysis.best_result["training_iteration"] == best.last_result["training_iteration"] == 9
    assert analysis.best_checkpoint is analysis.get_best_checkpoint(best, "loss", "min") is None
    assert list(analysis.dataframe("loss", "min")["config/x"]) == [1, 0, 4]
    assert list(analysis.results_df.index) == [each.trial_id for each in analysis.trials]


@pytest.mark.parametrize("given", [{"restore": "/x"}, {"export_formats": []}, {"stopp": {}}])
def test_arguments_of_run_that_cannot_be_carried_over_are_refused(given):
    with pytest.raises(UserError, match=rf"tune.run\({next(iter(given))}=...\) cannot be carried"):
        tune.run(train, config={"x": tune.uniform(0, 1)}, **given)


def read_as_ray_tune_does(grid: ResultGrid) -> None:
    frame = grid.get_dataframe()
    assert {"config/x", "config/nest/y", "trial_id", "loss", "logdir"} <= set(frame)
    assert grid.get_best_result("deep/er", "max").metrics["deep/er"] == 9
    assert grid.get_best_result("loss", "min").config["x"] == 1
    with pytest.raises(UserError, match="no trial has reported the metric 'los'"):
        grid.get_best_result("los")


def test_a_ray_that_the_script_has_started_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tuners.ray, "is_initialized", lambda: True)
    with pytest.raises(UserError, match=r"remove ray.init\(\)"):
        tuner_of(tmp_path, space={"x": tune.uniform(0, 1)}).fit()


def test_the_study_file_of_the_page_is_accepted_with_the_script_of_the_page(tmp_path, monkeypatch):
    (script,) = pages.texts("ray-tune", "python")
    (study,) = pages.texts("ray-tune", "yaml")
    (tmp_path / "my_tuning.py").write_text(script)
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = parse(study, base=tmp_path, inspect=loading.inspect)
    assert spec.study == yaml.safe_load(study)["study"]
