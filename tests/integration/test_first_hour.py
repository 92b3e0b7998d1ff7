"""The first hour: scripts that were written before anyone heard of hpsearch are converted, run by
hand, and searched. They are in tests/first_hour/."""

import difflib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.test_run_and_resume import Workplace
from support.patience import PATIENCE_S

SCRIPTS = Path(__file__).parents[1] / "first_hour"
RATE = {"type": "float", "low": 1e-3, "high": 1e-1, "log": True}


@dataclass(frozen=True)
class Script:
    """A script, and how it becomes a study.

    Args:
        name: Of its file.
        edits: Lines, and what each becomes.
        arguments: Of its command line.
        result: Begins what it prints at its end.
        study: What the study file states, beside its name and the number of trials.
        tested: Metrics of what follows the training.
        saved: A file that it writes into the folder of its trial.
    """

    name: str
    edits: Mapping[str, str]
    result: str
    study: Mapping[str, Any]
    arguments: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    saved: str | None = None

    @property
    def text(self) -> str:
        return (SCRIPTS / f"{self.name}.py").read_text()

    @property
    def is_whole_file(self) -> bool:
        return str(self.study["task"]["kind"]).endswith(":__main__")

    @property
    def converted(self) -> str:
        """The script with its edits."""
        text = self.text
        for line, edited in self.edits.items():
            assert text.count(f"{line}\n") == 1, line
            text = text.replace(f"{line}\n", f"{edited}\n")
        return text

    def added(self) -> list[str]:
        """The lines that only the converted script has."""
        compared = difflib.ndiff(self.text.splitlines(), self.converted.splitlines())
        return [line[2:].strip() for line in compared if line.startswith("+ ")]


TRAINER = Script(
    "finetune",
    edits={
        "import torch": "import torch\nfrom trials.adapters.huggingface import TrainerReports",
        "    compute_metrics=compute_metrics,": (
            "    compute_metrics=compute_metrics,\n    callbacks=[TrainerReports()],"
        ),
    },
    result="test accuracy:",
    study={
        "task": {"kind": "finetune:__main__"},
        "space": {"learning_rate": RATE},
        "objective": {"metric": "eval_accuracy", "direction": "maximize"},
        "budget": {"per_trial": {"epochs": 2}},
    },
    tested=("test_accuracy", "test_loss"),
    saved="model.safetensors",
)
ARGPARSE = Script(
    "classify",
    edits={
        "from torch import nn": "from torch import nn\nfrom trials.script import trial",
        '        print(f"epoch {epoch}: accuracy {accuracy:.3f}")': (
            '        trial.report(epoch, {"accuracy": accuracy})\n'
            '        print(f"epoch {epoch}: accuracy {accuracy:.3f}")'
        ),
    },
    result="epoch 3: accuracy",
    arguments=("--width", "8"),
    study={
        "task": {"kind": "classify:__main__", "args": {"output": os.devnull}},
        "space": {
            "lr": RATE,
            "width": {"type": "int", "low": 2, "high": 16},
            "optimizer": {"type": "categorical", "choices": ["sgd", "adam"]},
        },
        "objective": {"metric": "accuracy", "direction": "maximize"},
        "budget": {"per_trial": {"epochs": 3}},
    },
)
LIGHTNING = Script(
    "regress",
    edits={
        "import torch": "import torch\nfrom trials.adapters.lightning import LightningReports",
        '            ModelCheckpoint(monitor="val_loss"),': (
            '            ModelCheckpoint(monitor="val_loss"),\n            LightningReports(),'
        ),
    },
    result="test loss:",
    study={
        "task": {"kind": "regress:__main__"},
        "space": {"lr": RATE},
        "objective": {"metric": "val_loss", "direction": "minimize"},
        "budget": {"per_trial": {"epochs": 2}},
    },
    tested=("test_loss",),
    saved="lightning",
)
RAY_TUNE = Script(
    "tune_slope",
    edits={"from ray import tune": "from hpsearch import tune"},
    result="best lr:",
    study={
        "task": {"kind": "tune_slope:train", "library": "ray_tune", "args": {"momentum": 0.5}},
        "space": {"lr": RATE},
        "objective": {"metric": "loss", "direction": "minimize"},
        "budget": {"per_trial": {"steps": 4}},
    },
)
OPTUNA = Script(
    "optimize",
    edits={},
    result="best:",
    study={
        "task": {"kind": "optimize:objective", "library": "optuna"},
        "objective": {"metric": "error", "direction": "minimize"},
        "budget": {"per_trial": {"steps": 4}},
    },
)


def started(workplace: Workplace, script: Path, *arguments: str) -> subprocess.Popen[str]:
    """A script as it is started by hand."""
    return subprocess.Popen(
        [sys.executable, str(script), *arguments],
        cwd=script.parent,
        env={**os.environ, **workplace.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What a process has printed and said, once it has ended well."""
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    return out, errors


@pytest.mark.parametrize(
    "script",
    [
        OPTUNA,
        *(
            pytest.param(each, marks=pytest.mark.thorough)
            for each in (ARGPARSE, TRAINER, LIGHTNING, RAY_TUNE)
        ),
    ],
    ids=lambda script: script.name,
)
def test_a_script_runs_alone_is_converted_by_two_lines_and_searched(script, tmp_path, shared_ray):
    assert len(script.added()) == len(script.edits) <= 2
    workplace = Workplace(tmp_path / "work", shared_ray)
    before, after = tmp_path / "before" / "script.py", workplace.folder / f"{script.name}.py"
    before.parent.mkdir()
    before.write_text(script.text)
    after.write_text(script.converted)
    study = {"study": script.name, "seed": 2, "resources": {"workers": 1, "cpu": 1}, **script.study}
    study["budget"] = {"trials": 3, **script.study["budget"]}
    (workplace.folder / "study.yaml").write_text(json.dumps(study))  # JSON is YAML, too

    by_hand = started(workplace, before, *script.arguments)
    converted = started(workplace, after, *script.arguments)
    workplace.call("check", "study.yaml")
    printed, said = ended(converted)
    results = [line for line in printed.splitlines() if line.startswith(script.result)]
    assert len(results) == 1
    expected = ended(by_hand)[0]
    if script is RAY_TUNE:  # a search of its own, which draws other values
        assert script.result in expected
        assert "trials pause from 2 iterations on, and the best 1 in 2 go on" in said
        assert workplace.rows("SELECT count(*) FROM trials") == [(4,)]
    elif script is not OPTUNA:  # whose sampler has no seed
        assert results[0] in expected.splitlines()

    told = workplace.call("run", "study.yaml")
    assert f"study {script.name} has ended: all 3 trials have ended" in told
    assert "best configuration: trial" in told
    assert "failed" not in told
    trials = json.loads(workplace.ask("trials", script.name, "--format", "json"))
    number = next(str(trial["number"]) for trial in trials if trial["state"] == "complete")
    shown = workplace.ask("show", script.name, number)
    for metric in script.tested:
        assert metric in shown, "what follows the training ran, and is on record"
    if script.is_whole_file:
        assert script.result in workplace.ask("show", script.name, number, "--log")
    if script.saved is not None:
        (folder,) = workplace.folder.glob(f"hpsearch-studies/{script.name}-*/trial-*{number}")
        assert (folder / script.saved).exists()
