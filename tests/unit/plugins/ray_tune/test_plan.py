"""What a Tuner is given, as a study: what is carried over, refused, and said to be left out."""

import sys
import threading
from types import ModuleType

import pytest
import yaml
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, HyperBandScheduler
from ray.tune.search.basic_variant import BasicVariantGenerator

from hpsearch import tune
from hpsearch.errors import SpecError, UserError
from hpsearch.plugins.ray_tune.plan import plan_of
from hpsearch.plugins.ray_tune.tuner import NotCarriedOverWarning, Tuner
from hpsearch.running import loading
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.reading import parse

LOCK = threading.Lock()


def train(config, lock=None, data=None):
    tune.report({"loss": config["lr"]})


class Steps(tune.Trainable):
    def step(self):
        return {"loss": 1}


def planned(trainable=train, space=None, run=None, **tuned):
    space = space or {"lr": tune.uniform(0, 1)}
    tuned = {"metric": "loss", "mode": "min", "num_samples": 5, **tuned}
    ran = {"name": "mine", "storage_path": "/results", "stop": {"training_iteration": 9}}
    ran |= run or {}
    return plan_of(trainable, space, tune.TuneConfig(**tuned), tune.RunConfig(**ran))


def study_of(*args, **changes):
    return yaml.safe_load(planned(*args, **changes).text)


def test_a_tuner_is_a_study_file_that_the_program_accepts():
    plan = planned(max_concurrent_trials=3, time_budget_s=60)
    spec = parse(plan.text, base=plan.base, inspect=loading.inspect)
    assert (spec.study, spec.objective.direction) == ("mine", "minimize")
    assert spec.task == {"kind": f"{__name__}:train", "library": "ray_tune"}
    assert (spec.budget.trials, spec.budget.wall_clock_s) == (5, 60.0)
    assert (spec.budget.per_trial.total, spec.budget.per_trial.report_interval) == (9.0, 1.0)
    assert (spec.resources.workers, spec.resources.cpu, spec.resources.gpu) == (3, 1.0, 0.0)
    assert (plan.storage, plan.folder) == ("sqlite:////results/hpsearch.db", "/results/mine")
    assert plan.dropped == []


def test_grids_are_tried_at_every_point_as_often_as_ray_tune_would():
    space = {"lr": tune.uniform(0, 1), "a": tune.grid_search([1, 2, 3])}
    study = study_of(space=space, num_samples=2)
    assert study["budget"]["trials"] == 6
    assert study["enqueue"] == [{"a": 1}, {"a": 2}, {"a": 3}] * 2


def test_what_a_trainable_is_given_and_takes_goes_along():
    wrapped = tune.with_parameters(train, lock=LOCK, data=[1, 2])
    study = study_of(tune.with_resources(wrapped, {"cpu": 2, "gpu": 0.5}))
    assert study["task"]["args"]["_tune"] == {
        "parameters": {"data": [1, 2]},
        "globals": {"lock": "LOCK"},
    }
    assert (study["resources"]["cpu"], study["resources"]["gpu"]) == (2, 0.5)
    assert study_of(tune.with_resources(Steps, {"CPU": 3}))["resources"]["cpu"] == 3


def test_a_scheduler_may_say_what_is_good_and_how_long_a_trial_is():
    scheduler = ASHAScheduler(
        metric="acc", mode="max", max_t=27, grace_period=3, reduction_factor=3
    )
    plan = planned(metric=None, mode=None, scheduler=scheduler, run={"stop": None})
    study = yaml.safe_load(plan.text)
    assert study["objective"] == {"metric": "acc", "direction": "maximize"}
    assert study["budget"]["per_trial"]["steps"] == 27
    assert study["search"] == {"pruner": {"kind": "promotion", "eta": 3, "first_rung": 3}}
    assert plan.dropped == [
        "scheduler AsyncHyperBandScheduler: trials pause from 3 iterations on, and the best 1 in 3"
        " go on; none is stopped for good"
    ]


def test_a_grace_period_beyond_the_end_of_a_trial_pauses_none():
    scheduler = ASHAScheduler(grace_period=4)
    study = study_of(scheduler=scheduler, run={"stop": {"training_iteration": 2}})
    assert study["search"]["pruner"]["first_rung"] == study["budget"]["per_trial"]["steps"] == 2


@pytest.mark.parametrize(("max_t", "stop", "least"), [(100, 30, 30), (30, 100, 30), (9, None, 9)])
def test_a_schedulers_end_and_the_one_of_the_run_hold_together(max_t, stop, least):
    run = {"stop": None if stop is None else {"training_iteration": stop}}
    for scheduler in (ASHAScheduler(max_t=max_t), HyperBandScheduler(max_t=max_t)):
        assert study_of(scheduler=scheduler, run=run)["budget"]["per_trial"]["steps"] == least
    endless = ASHAScheduler(max_t=max_t, stop_last_trials=False)
    whole = study_of(scheduler=endless, run=run)["budget"]["per_trial"]["steps"]
    assert whole == (stop or max_t)


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        (ASHAScheduler(max_t=100), "trials pause from 2 iterations on"),
        (ASHAScheduler(max_t=10, grace_period=5), "leaves no iteration at which trials could"),
    ],
)
def test_the_warning_says_where_trials_really_pause(scheduler, said):
    plan = planned(scheduler=scheduler, run={"stop": None})
    levels = rung_levels(parse(plan.text, base=plan.base))
    assert (f"from {levels[0]:g} iterations" in said) == (len(levels) > 1)
    assert said in plan.dropped[0]


@pytest.mark.parametrize(
    "scheduler", [ASHAScheduler(reduction_factor=2.5), ASHAScheduler("steps"), HyperBandScheduler()]
)
def test_a_scheduler_without_a_counterpart_is_said(scheduler):
    plan = planned(scheduler=scheduler)
    assert "search" not in yaml.safe_load(plan.text)
    name = type(scheduler).__name__
    assert plan.dropped == [f"scheduler {name}: a study has its own (docs/search.md)"]


def test_a_class_is_saved_as_often_as_it_is_asked_for():
    often = {"checkpoint_config": tune.CheckpointConfig(checkpoint_frequency=3)}
    assert study_of(run=often)["budget"]["per_trial"]["report_every"] == 3
    long = {"stop": {"training_iteration": 1000}}
    assert study_of(run=long)["budget"]["per_trial"]["report_every"] == 10


def test_what_a_study_searches_by_itself_is_said():
    plan = planned(
        search_alg=BasicVariantGenerator(),
        scheduler=FIFOScheduler(),
        space={"a": tune.grid_search([1, 2])},
    )
    assert [line.partition(":")[0] for line in plan.dropped] == ["search_alg", "grid_search of a"]


def unreachable():
    def inside(config):
        pass

    return inside


TYPED = ModuleType("__main__")
exec("def typed(config): pass", vars(TYPED))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": None}, "needs to know what makes a trial good"),
        ({"metric": ["a", "b"]}, "needs to know what makes a trial good"),
        ({"num_samples": -1}, "would never end"),
        ({"run": {"stop": None}}, "how many reports a trial makes at most"),
        ({"run": {"stop": {"loss": 0.1}}}, "cannot be carried over"),
        ({"run": {"stop": lambda trial, result: True}}, "cannot be carried over"),
        ({"run": {"stop": {"training_iteration": 0}}}, "cannot have 0 training iterations"),
        ({"run": {"storage_path": "s3://bucket/x"}}, "a database cannot be in s3://bucket"),
        ({"trainable": "PPO"}, "cannot train 'PPO'"),
        ({"trainable": None}, "cannot train None"),
        ({"trainable": unreachable()}, "not a global of"),
        ({"trainable": lambda config: None}, "not a global of"),
        (
            {"trainable": tune.with_parameters(train, data=threading.Lock())},
            "workers cannot be given data",
        ),
    ],
)
def test_what_cannot_be_carried_over_is_one_error(changes, message, monkeypatch):
    monkeypatch.delenv("HPSEARCH_STORAGE", raising=False)
    with pytest.raises(UserError, match=message):
        planned(**changes)


def test_resources_of_another_kind_are_refused():
    for resources, message in (
        ({"cpu": 1, "memory": 3}, "asks for memory"),
        (lambda config: None, "cannot follow"),
        (tune.PlacementGroupFactory([{"CPU": 1}]), "cannot follow"),
    ):
        with pytest.raises(UserError, match=message):
            tune.with_resources(train, resources)


def test_what_was_typed_into_a_notebook_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", TYPED)
    with pytest.raises(UserError, match="as in a notebook"):
        planned(TYPED.typed)


UNGUARDED = """
from hpsearch import tune

def train(config):
    pass

def search():
    tuner = tune.Tuner(train)
    tuner.fit()

search()
raise AssertionError("a worker imported what follows the study")
"""


def test_a_worker_imports_a_script_without_a_guard_up_to_its_tuner(tmp_path, monkeypatch):
    (tmp_path / "unguarded_script.py").write_text(UNGUARDED)
    monkeypatch.setattr(sys, "path", [*sys.path])
    part = {"kind": "unguarded_script:train", "library": "ray_tune"}
    assert loading.inspect(part, tmp_path) == []
    assert loading.inspect(part, tmp_path) == [], "the module stays imported"


def test_a_mistake_that_only_the_study_shows_is_found_before_a_cluster_is_started(tmp_path):
    run = tune.RunConfig(name="a b", storage_path=str(tmp_path), stop={"training_iteration": 1})
    tuner = Tuner(
        train,
        param_space={"lr": tune.uniform(0, 1)},
        tune_config=tune.TuneConfig(
            metric="loss", mode="min", time_budget_s=9, search_alg=BasicVariantGenerator()
        ),
        run_config=run,
    )
    with (
        pytest.warns(NotCarriedOverWarning, match="search_alg: a study has its own"),
        pytest.raises(SpecError, match="study: must be 1 to 100 letters"),
    ):
        tuner.fit()
