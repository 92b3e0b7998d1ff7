"""How many trials share a GPU: a search over known curves, and real trials on this machine."""

import os
import sys

import pytest

from hpsearch.domain.history import History
from hpsearch.domain.records import StudyRecord
from hpsearch.errors import UserError
from hpsearch.running.rehearsal import sharing
from hpsearch.running.study_run.brain import build_study
from hpsearch.study_file.models import Resources
from hpsearch.study_file.reading import parse

TABLE = """
study: t
task: {kind: tabular, train: train.csv, validation: 0.25, target: y}
objective: {metric: loss, direction: minimize}
space: {learning_rate: {type: float, low: 0.001, high: 0.1, log: true}}
budget: {trials: 4, per_trial: {epochs: 3}}
"""


def saturating(half):
    """The samples a second of trials on a card that `half` of them fill to a half."""
    return lambda trials: 1000 * trials / (1 + trials / half)


def worse_past(most):
    return lambda trials: 1000.0 * (trials if trials <= most else most * most / trials)


def full_at(most):
    return lambda trials: 1000.0 * trials if trials <= most else None


CURVES = [saturating(1), saturating(3), saturating(30)]
CURVES += [worse_past(most) for most in (1, 2, 3, 6, 7, 12)]
CURVES += [full_at(most) for most in (1, 2, 3, 5, 11, 16)]


@pytest.mark.parametrize("curve", CURVES)
def test_the_choice_trains_within_a_tenth_of_the_best(curve):
    chosen = sharing.choose(curve, 16, lambda line: None)
    best = max(curve(trials) or 0.0 for trials in range(1, 17))
    assert curve(chosen) >= 0.9 * best


def test_each_measurement_is_told_and_a_card_is_never_filled_past_its_limit():
    told, tried = [], []

    def measure(trials):
        tried.append(trials)
        return None if trials > 4 else 500.0 * trials

    assert sharing.choose(measure, 16, told.append) == 4
    assert tried == [1, 2, 4, 8, 6, 3, 5]
    assert told[0] == "1 trial at once: 500 samples a second"
    assert told[3] == "8 trials at once: a trial fails, as where memory is short"


def test_cores_limit_the_trials():
    tried = []
    assert sharing.choose(lambda n: tried.append(n) or 100.0 * n, 3, lambda line: None) == 3
    assert sorted(tried) == [1, 2, 3]


def test_where_not_even_one_trial_trains_the_study_is_refused():
    with pytest.raises(UserError, match="no trial trains on the GPU"):
        sharing.choose(lambda trials: None, 16, lambda line: None)


@pytest.fixture
def spec(tmp_path):
    lines = ["x,y", *(f"{n / 100},{'high' if n > 60 else 'low'}" for n in range(120))]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    return parse(TABLE, base=tmp_path)


def test_real_trials_are_counted_and_ended(spec, monkeypatch):
    monkeypatch.setattr(sharing, "WARM_UP_S", 0.0)
    monkeypatch.setattr(sharing, "MEASURED_S", 1.0)
    with sharing.Trials(spec, "cpu") as trials:
        # The first report imports what a slow machine takes seconds for.
        assert any(trials.samples_per_second(1) for _ in range(60))
        trials._trainers[0].process.kill()
        trials._trainers[0].process.wait()
        assert any(trials.samples_per_second(2) for _ in range(60))
        pids = [trainer.process.pid for trainer in trials._trainers]
        assert len(pids) == 2
        trials.samples_per_second(1)
        assert len(trials._trainers) == 1
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_trial_that_fails_is_no_measurement(spec, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with sharing.Trials(spec, "cpu") as trials:
        assert trials.samples_per_second(1) is None


def test_without_a_gpu_there_is_nothing_to_share(spec, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    found = sharing.resolved(spec, Resources(gpu="share"), None, pytest.fail)
    assert found.gpu == 0.0


def refuse(trials, number):
    raise AssertionError("measured again")


def test_what_is_measured_replaces_the_word(spec, monkeypatch):
    told = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda number: "A GPU")
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(sharing.Trials, "samples_per_second", lambda self, n: saturating(4)(n))
    found = sharing.resolved(spec, Resources(gpu="share"), None, told.append)
    assert found.gpu == 1 / 16
    assert told[-1] == "16 trials a GPU: gpu 0.0625"
    monkeypatch.setattr(sharing.Trials, "samples_per_second", refuse)
    assert sharing.resolved(spec, Resources(gpu="share"), None, told.append).gpu == 1 / 16
    larger = spec.model_copy(update={"settings": {"batch_size": 64}})
    with pytest.raises(AssertionError, match="measured again"):
        sharing.resolved(larger, Resources(gpu="share"), None, told.append)


def test_attempts_are_charged_by_the_measured_share_also_where_their_driver_has_crashed(spec):
    shared = spec.model_copy(update={"resources": Resources(gpu="share", workers=3)})
    charged = sharing.charged_by(Resources(gpu=0.25, workers=5), shared)
    assert charged.resources == Resources(gpu=0.25, workers=3)
    brain = build_study(History(StudyRecord(0, charged.study, charged.text)), charged)
    assert brain.stated_gpus == 0.25


def test_on_a_cluster_it_is_measured_on_a_node(spec):
    with pytest.raises(UserError, match="measured on a GPU of this machine"):
        sharing.resolved(spec, Resources(gpu="share"), "ray://head:10001", pytest.fail)


def test_a_number_stays(spec):
    resources = Resources(gpu=0.25)
    assert sharing.resolved(spec, resources, "ray://head:10001", pytest.fail) is resources
