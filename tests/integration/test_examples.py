"""The examples, each run small: its own script makes its data, its study has three short trials."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import transformers
import yaml

from integration.test_run_and_resume import Workplace
from trials import tasks
from trials.tasks.huggingface import tokenizer as tokenizers

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_LINES = 40


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """A folder with all examples in it."""
    workplace = Workplace(tmp_path / "work")
    for path in [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.yaml")]:
        shutil.copy(path, workplace.folder)
    return workplace


def make_data(workplace: Workplace, script: str) -> None:
    subprocess.run(
        [sys.executable, str(workplace.folder / script)], cwd=workplace.folder.parent, check=True
    )


def run_small(workplace: Workplace, name: str, **task: Any) -> list[dict[str, Any]]:
    """Run a study with three trials of one epoch, and tell its best ones."""
    path = workplace.folder / name
    study = yaml.safe_load(path.read_text())
    study["task"] |= task
    study["budget"] = {"trials": 3, "per_trial": {"epochs": 1}}
    study["resources"] = {"workers": 1}
    path.write_text(yaml.safe_dump(study))
    workplace.call("run", name)
    out, _ = workplace.start("best", "--top", "3", "--format", "json").communicate()
    best: list[dict[str, Any]] = json.loads(out)
    return best


def write_tiny_model(folder: Path, texts: list[str]) -> None:
    """A DistilBERT of random weights, as a download of the hub lies on the disk."""
    tokenizer = tokenizers.word_pieces(texts, 300)
    config = transformers.DistilBertConfig(
        vocab_size=len(tokenizer),
        dim=32,
        n_layers=2,
        n_heads=2,
        hidden_dim=64,
        max_position_embeddings=64,
    )
    transformers.DistilBertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.mark.thorough
def test_a_price_is_predicted_from_a_table_with_gaps(workplace):
    make_data(workplace, "houses.py")
    table = pd.read_csv(workplace.folder / "houses.csv")
    assert table["year"].isna().any()
    best = run_small(workplace, "houses.yaml")
    assert len(best) == 3
    error_of_a_guess_of_0 = (table["price"] ** 2).mean() ** 0.5
    assert best[0]["value"] < error_of_a_guess_of_0


@pytest.mark.thorough
def test_adapters_of_a_pretrained_model_in_a_folder_are_trained(workplace):
    make_data(workplace, "reviews.py")
    with (workplace.folder / "reviews.csv").open(newline="") as file:
        texts = [row["review"] for row in csv.DictReader(file)]
    write_tiny_model(workplace.folder / "models" / "distilbert", texts)
    best = run_small(workplace, "lora.yaml", model="models/distilbert")
    assert len(best) == 3
    checkpoint = Path(best[0]["checkpoint"])
    assert (checkpoint / "adapter_model.safetensors").is_file(), sorted(checkpoint.iterdir())


@pytest.mark.thorough
def test_a_trainer_of_hugging_face_is_searched(workplace):
    best = run_small(workplace, "vision.yaml")
    assert len(best) == 3
    kept = {path.name for path in Path(best[0]["checkpoint"]).iterdir()}
    assert {"model.safetensors", "config.json", "trainer_state.json"} <= kept
    assert {"optimizer.pt", "scheduler.pt", "rng_state.pth"}.isdisjoint(kept)


@pytest.mark.thorough
def test_a_trainable_of_ray_tune_is_searched(workplace, shared_ray):
    workplace.environment |= shared_ray
    best = run_small(workplace, "tuned.yaml")
    assert len(best) == 3
    assert best[0]["value"] > 0.2, "a guess has 0.1"
    assert Path(best[0]["checkpoint"], "checkpoint", "_dict_checkpoint.pt").is_file()


def test_the_tickets_are_pairs_with_several_labels_of_which_one_is_rare(workplace):
    make_data(workplace, "tickets.py")
    part = yaml.safe_load((workplace.folder / "tickets.yaml").read_text())["task"]
    assert tasks.inspect(part, workplace.folder) == []
    data = tasks.load(part, workplace.folder).prepare({"max_length": 48})
    assert data.pairs
    assert data.labels == ("billing", "delivery", "legal")
    assert data.class_weights[2] > 10


@pytest.mark.thorough
def test_an_objective_of_optuna_is_searched_as_it_is(workplace):
    best = run_small(workplace, "objective.yaml")
    assert len(best) == 3
    assert all({"model", "alpha"} <= trial["params"].keys() for trial in best)


@pytest.mark.parametrize(
    "script",
    [
        *("digits.py", "houses.py", "modules.py", "objective.py"),
        *("reviews.py", "spiral.py", "tickets.py", "tuned.py", "vision.py"),
    ],
)
def test_the_code_of_an_example_is_short(script):
    lines = (EXAMPLES / script).read_text().splitlines()
    assert len([line for line in lines if line.strip()]) < MOST_LINES


def test_every_study_file_has_its_line_in_the_list():
    listed = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.glob("*.yaml"):
        assert f"| [{path.name}]({path.name}) |" in listed
        assert f"hpsearch run examples/{path.name}`" in listed
