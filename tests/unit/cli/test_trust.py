"""`trust_remote_code` in a study file: `check` refuses a model that brings code without it, and
runs that code with it."""

import sys
from pathlib import Path

import pytest
from transformers import dynamic_module_utils

from hpsearch.cli.studies.check import check_study
from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.reading import load
from support.files.remote_models import MODELING, ran, write_model
from trials import tasks

STUDY = """\
study: films
task:
  kind: text_classification
  train: train.csv
  validation: 0.2
  text: text
  label: label
  model: bag
  split_seed: 0
settings: {max_length: 16}
space:
  learning_rate: {type: float, low: 1.0e-4, high: 1.0e-2, log: true}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 12, per_trial: {epochs: 3}}
resources: {gpu: 0}
"""
TRUSTED = STUDY.replace("split_seed: 0", "trust_remote_code: true")
TEXTS = [f"a {'good' if i % 2 else 'bad'} film {'indeed ' * (i % 5)}" for i in range(40)]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study file, its data, and a model that brings code."""
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.startswith("transformers_modules")]:
        monkeypatch.delitem(sys.modules, name)
    rows = "".join(f"{text},{i % 2}\n" for i, text in enumerate(TEXTS))
    (tmp_path / "train.csv").write_text(f"text,label\n{rows}")
    write_model(tmp_path / "bag", TEXTS)
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    return file


def check(study: Path) -> None:
    check_study(study, f"sqlite:///{study.parent / 'studies.db'}", None)


def test_check_refuses_a_model_that_brings_code_and_says_how_to_trust_it(study, tmp_path):
    with pytest.raises(SpecError) as refused:
        check(study)
    assert refused.value.problems == [
        f"study.yaml:8: task.model: '{tmp_path / 'bag'}' brings code of its own, "
        "which would run with your rights; "
        "if you trust it, write trust_remote_code: true under task"
    ]
    assert ran(tmp_path / "bag") == set()


@pytest.mark.thorough
def test_check_runs_code_that_is_trusted(study, tmp_path):
    study.write_text(TRUSTED)
    check(study)
    assert ran(tmp_path / "bag") == {"configuration_bag", "modeling_bag"}


def test_code_that_fails_in_its_first_step_is_reported_without_a_traceback(study, tmp_path):
    broken = MODELING.replace("        mask = attention_mask", "        mask = attention_maks")
    (tmp_path / "bag" / "modeling_bag.py").write_text(broken)
    study.write_text(TRUSTED)
    with pytest.raises(UserError, match=r"the first step fails .*attention_maks"):
        check(study)


@pytest.mark.parametrize(
    ("value", "shown"), [('"yes"', "'yes'"), ('"true"', "'true'"), ("1", "1"), ("null", "None")]
)
def test_only_true_and_false_are_accepted(study, tmp_path, value, shown):
    study.write_text(TRUSTED.replace("trust_remote_code: true", f"trust_remote_code: {value}"))
    with pytest.raises(SpecError) as refused:
        load(study, inspect=tasks.inspect)
    assert refused.value.problems == [
        f"study.yaml:9: task.trust_remote_code: must be true or false, not {shown}"
    ]
    assert ran(tmp_path / "bag") == set()


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("settings: {", "settings: {trust_remote_code: true, ", "study.yaml:10: settings."),
        (
            "space:\n",
            "space:\n  trust_remote_code: {type: categorical, choices: [true, false]}\n",
            "study.yaml:12: space.",
        ),
    ],
)
def test_trust_is_neither_a_setting_nor_searched(study, old, new, where):
    study.write_text(STUDY.replace(old, new))
    with pytest.raises(SpecError) as refused:
        load(study, inspect=tasks.inspect)
    expected = f"{where}trust_remote_code: the task has no such setting"
    assert any(problem.startswith(expected) for problem in refused.value.problems)
