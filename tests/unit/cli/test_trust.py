"""`trust_remote_code` in a study file: what is refused without it, what is told with it, and where
it may stand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from transformers import BertConfig, dynamic_module_utils

from hpsearch.cli.studies.check import check_study
from hpsearch.cli.studies.run import RunOptions, run_study
from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.advice import advice
from hpsearch.study_file.reading import load, parse
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


def database(folder: Path) -> str:
    return f"sqlite:///{folder / 'studies.db'}"


def test_check_and_run_refuse_a_model_that_brings_code_and_make_no_study(
    study: Path, tmp_path: Path
) -> None:
    told = (
        f"study.yaml:8: task.model: '{tmp_path / 'bag'}' brings code of its own, "
        "which would run with your rights; "
        "if you trust it, write trust_remote_code: true under task"
    )
    for command in (
        lambda: check_study(study, database(tmp_path), None),
        lambda: run_study(study, RunOptions(database(tmp_path), quiet=True)),
    ):
        with pytest.raises(SpecError) as refused:
            command()
        assert refused.value.problems == [told]
    assert not (tmp_path / "studies.db").exists()
    assert ran(tmp_path / "bag") == set()


@pytest.mark.thorough
def test_check_says_in_a_line_that_trusted_code_runs(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study.write_text(TRUSTED)
    check_study(study, database(tmp_path), None)
    line = (
        "task.trust_remote_code: code that bag may bring will run with your rights, "
        "here and on every worker\n"
    )
    assert line in capsys.readouterr().err
    assert ran(tmp_path / "bag") == {"configuration_bag", "modeling_bag"}


def test_code_that_fails_in_its_first_step_is_told_without_a_traceback(
    study: Path, tmp_path: Path
) -> None:
    broken = MODELING.replace("        mask = attention_mask", "        mask = attention_maks")
    (tmp_path / "bag" / "modeling_bag.py").write_text(broken)
    study.write_text(TRUSTED)
    with pytest.raises(UserError, match=r"the first step fails .*attention_maks"):
        check_study(study, database(tmp_path), None)


def test_every_model_that_trials_may_be_of_is_told(study: Path, tmp_path: Path) -> None:
    choices = "space:\n  model: {type: categorical, choices: [bag, plain, org/other]}"
    BertConfig().save_pretrained(tmp_path / "plain")
    study.write_text(TRUSTED.replace("model: bag", "model: scratch").replace("space:", choices))
    (line,) = advice(load(study, inspect=tasks.inspect))
    assert "code that bag, plain, org/other may bring will run" in line


def test_nothing_is_told_where_there_is_no_trust(study: Path, tmp_path: Path) -> None:
    assert advice(parse(STUDY, base=tmp_path)) == []


@pytest.mark.parametrize(
    ("written", "shown"),
    [('"yes"', "'yes'"), ('"true"', "'true'"), ("1", "1"), ("null", "None"), ("[true]", "[True]")],
)
def test_only_true_and_false_are_words_of_trust(
    study: Path, tmp_path: Path, written: str, shown: str
) -> None:
    study.write_text(TRUSTED.replace("trust_remote_code: true", f"trust_remote_code: {written}"))
    with pytest.raises(SpecError) as refused:
        load(study, inspect=tasks.inspect)
    assert refused.value.problems == [
        f"study.yaml:9: task.trust_remote_code: must be true or false, not {shown}"
    ]
    assert ran(tmp_path / "bag") == set()


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (
            "settings: {",
            "settings: {trust_remote_code: true, ",
            "study.yaml:10: settings.trust_remote_code: ",
        ),
        (
            "space:\n",
            "space:\n  trust_remote_code: {type: categorical, choices: [true, false]}\n",
            "study.yaml:12: space.trust_remote_code: ",
        ),
    ],
)
def test_trust_is_neither_a_setting_nor_searched(
    study: Path, tmp_path: Path, old: str, new: str, where: str
) -> None:
    study.write_text(STUDY.replace(old, new))
    with pytest.raises(SpecError) as refused:
        load(study, inspect=tasks.inspect)
    assert any(
        problem.startswith(f"{where}the task has no such setting")
        for problem in refused.value.problems
    )
    assert ran(tmp_path / "bag") == set()
