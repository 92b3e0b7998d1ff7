"""What a training computes with: recorded, used again, and where it cannot be, said."""

import json
import os
import sys
from dataclasses import replace

import pytest
import torch
import yaml

from support.running.programs import run_program
from trials.contract import TaskError
from trials.running import arithmetic
from trials.running.arithmetic import Arithmetic

RECORDED = Arithmetic(threads=3, precision="fp32", versions={"torch": "2.0.0"})


@pytest.fixture(autouse=True)
def as_it_was():
    threads = torch.get_num_threads()
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "MKL_DYNAMIC")
    environment = {name: os.environ.get(name) for name in names}
    yield
    torch.set_num_threads(threads)
    for name, value in environment.items():
        os.environ.pop(name, None)
        os.environ.update({name: value} if value is not None else {})


def adopt(recorded, settings=None, threads=1, known=("precision",)):
    return arithmetic.adopt(recorded, settings or {}, "cpu", threads=threads, known=known)


def test_a_training_that_begins_takes_the_threads_it_is_given_and_records_them():
    settings, computed = adopt(None, {"precision": "auto", "patience": 2}, threads=2)
    assert torch.get_num_threads() == computed.threads == 2
    assert settings == {"precision": computed.precision, "patience": 2}
    assert computed.precision in ("bf16", "fp32")
    version, *_build = torch.__version__.split("+")  # packages do not always tell their build
    assert computed.versions["torch"].split("+")[0] == version


def test_what_is_recorded_is_used_again():
    settings, computed = adopt(RECORDED, {"precision": "auto"})
    assert (torch.get_num_threads(), computed.threads) == (3, 3)
    assert settings["precision"] == "fp32"


def test_a_precision_that_the_settings_fix_stays():
    settings, computed = adopt(RECORDED, {"precision": "bf16"})
    assert settings["precision"] == computed.precision == "bf16"


def test_a_task_without_a_precision_gets_none():
    settings, computed = adopt(RECORDED, {"own": 1}, known=None)
    assert settings == {"own": 1}
    assert computed.precision is None


def test_what_cannot_be_the_same_is_named():
    _, computed = adopt(replace(RECORDED, precision="fp16", device="an abacus"))
    told = arithmetic.differences(replace(RECORDED, precision="fp16", device="an abacus"), computed)
    assert any(
        phrase.startswith("torch ") and phrase.endswith("instead of 2.0.0") for phrase in told
    )
    assert any(phrase.endswith("instead of an abacus") for phrase in told)
    assert any(
        phrase.startswith("precision ") and phrase.endswith("instead of fp16") for phrase in told
    )
    assert arithmetic.differences(computed, computed) == []


def test_it_comes_back_from_plain_values_also_of_earlier_versions():
    plain = json.loads(json.dumps(RECORDED.as_plain()))
    assert Arithmetic.from_plain(plain) == RECORDED


@pytest.mark.parametrize(
    ("plain", "said"),
    [
        ("one thread", "arithmetic: must be a mapping"),
        ({"precision": "fp32"}, "arithmetic.threads: must be a whole number of at least 1"),
        ({"threads": 0}, "arithmetic.threads: must be a whole number of at least 1, not 0"),
        ({"threads": True}, "arithmetic.threads: must be a whole number"),
        ({"threads": 1, "precision": "fp8"},
         "arithmetic.precision: must be one of bf16, fp16, fp32"),
        ({"threads": 1, "treads": 2},
         "arithmetic.treads: is not a part of it; did you mean threads?"),
    ],
)  # fmt: skip
def test_a_mistake_in_it_is_said_with_its_place(plain, said):
    with pytest.raises(TaskError, match=said):
        Arithmetic.from_plain(plain)


@pytest.fixture
def train_alone(lab):
    """Trains in a process of its own, so that nothing of this one decides its threads; reports and
    messages."""

    def train(*options, **parts):
        study = {
            "task": lab.part(),
            "settings": {},
            "budget": {"per_trial": {"epochs": 2}},
            "seed": 3,
            **parts,
        }
        (lab.folder / "alone.yaml").write_text(yaml.safe_dump(study))
        command = [
            sys.executable,
            "-m",
            "trials",
            "alone.yaml",
            "--out",
            "out",
            "--device",
            "cpu",
            *options,
        ]
        done = run_program(command, cwd=lab.folder)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    return train


@pytest.mark.thorough
def test_a_training_alone_computes_as_its_file_says_and_its_resume_too(lab, train_alone):
    _, said = train_alone(arithmetic={"threads": 3, "precision": "fp32", "device": "an abacus"})
    recorded = json.loads((lab.folder / "out" / "arithmetic.json").read_text())
    assert (recorded["threads"], recorded["precision"]) == (3, "fp32")
    assert "instead of an abacus" in said
    _, said = train_alone("--resume", budget={"per_trial": {"epochs": 3}})
    assert "threads" not in said, "the folder says how many"
    assert json.loads((lab.folder / "out" / "arithmetic.json").read_text()) == recorded


@pytest.mark.thorough
def test_what_the_file_of_a_training_alone_leaves_open_is_recorded_with_the_rest(lab, train_alone):
    train_alone(arithmetic={"threads": 2})
    recorded = json.loads((lab.folder / "out" / "arithmetic.json").read_text())
    assert recorded["threads"] == 2
    assert recorded["precision"] in ("bf16", "fp32"), "a resume on another device goes on in it"
    assert "torch" in recorded["versions"]
