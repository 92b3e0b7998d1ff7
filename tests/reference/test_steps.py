"""Steps of training beside Hugging Face's Trainer, on the same samples in the same order: learning
rates, losses, gradient norms and the weights at the end, for every kind that it trains too."""

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from torch.optim import lr_scheduler
from transformers import Trainer

from support.files import small_models
from support.running import trainer
from trials import tasks
from trials.contract import Setup
from trials.devices import precision
from trials.loop.optim.optimizers import parameter_groups
from trials.loop.optim.schedules import ONE_CYCLE_RISE, multiplier
from trials.running.report_grid import budget_from
from trials.settings import SCHEDULES, Settings
from trials.tasks.images import processor

pytestmark = pytest.mark.thorough

STEPS = 12
SEEDS = (0, 1)
TEXTS = [
    " ".join(["one", "two", "three", "four", "five", "six"][: 1 + number % 6] * (1 + number % 3))
    for number in range(96)
]
KINDS = {
    "text_classification": ("bert", trainer.plain, {"text": "text", "label": "topic"}),
    "text_classification by a decoder": ("gpt2", trainer.plain, {"text": "text", "label": "topic"}),
    "text_classification of labels": ("bert", trainer.plain, {"text": "text", "label": ["a", "b"]}),
    "text_regression": ("bert", trainer.plain, {"text": "text", "label": "score"}),
    "token_classification": ("bert", trainer.plain, {"train": "words.jsonl"}),
    "language_modeling": ("gpt2", trainer.shifted, {"text": "text", "samples": "documents"}),
    "language_modeling by a llama": ("llama", trainer.shifted, {"text": "text"}),
    "sequence_to_sequence": ("t5", trainer.of_pairs, {"source": "text", "target": "answer"}),
    "image_classification": ("vit", trainer.pixels, {"train": "images.npz"}),
}
"""Kinds of task, each with the family of its model, and the arguments of that for a batch."""
WEIGHS_TOKENS = ("language_modeling", "language_modeling by a llama")
"""The kinds in which the Trainer divides accumulated losses by the targets of the whole batch."""


@pytest.fixture(autouse=True)
def _exact_arithmetic(monkeypatch):
    monkeypatch.setattr(precision, "cpu_has_bf16", lambda: False)


@pytest.fixture
def folder(tmp_path):
    numbers = np.arange(len(TEXTS))
    rows = {
        "text": TEXTS,
        "topic": [["x", "y", "z"][number % 3] for number in numbers],
        "a": numbers % 2,
        "b": numbers // 2 % 2,
        "score": numbers % 7 + 0.5,
        "answer": [text[::-1] for text in TEXTS],
    }
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    words = [text.split() for text in TEXTS]
    tags = [["B-X" if word == "one" else "O" for word in row] for row in words]
    frame = pd.DataFrame({"tokens": words, "tags": tags})
    frame.to_json(tmp_path / "words.jsonl", orient="records", lines=True)
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (96, 16, 16, 3)).astype(np.uint8)
    np.savez(tmp_path / "images.npz", images=images, labels=rows["topic"])
    return tmp_path


def started(folder, kind, seed, **settings):
    """A run of ours that has not begun."""
    family, _, part = KINDS[kind]
    small_models.write(folder / family, family, TEXTS)
    if family == "vit":
        processor.write(folder / family, 16, (0.5,) * 3, (0.5,) * 3)
    name = kind.partition(" ")[0]
    part = {"kind": name, "train": "rows.csv", "validation": 0.25, "model": family, **part}
    params = {"dropout": 0.0, "precision": "fp32", "learning_rate": 3e-3, "warmup": 0.25}
    if name != "image_classification":
        params["max_length"] = 8
    params |= settings
    task = tasks.load(part, folder)
    budget = budget_from({"steps": STEPS, "report_every": STEPS})
    return task.start(Setup(params, seed, budget, folder / f"run-{seed}"), task.prepare(params))


def assert_same(ours, theirs, tolerance=2e-3):
    """Rates to the last digits; what is computed from them in another order, to `tolerance`."""
    assert ours.rates == pytest.approx(theirs.rates, rel=1e-9)
    assert ours.losses == pytest.approx(theirs.losses, rel=tolerance)
    assert ours.norms == pytest.approx(theirs.norms, rel=5 * tolerance)
    assert ours.weights.keys() == theirs.weights.keys()
    for name, tensor in ours.weights.items():
        assert torch.allclose(tensor, theirs.weights[name], rtol=0.05, atol=1e-4), name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_trains_step_by_step_as_the_trainer_does(kind, seed, folder):
    _, to_inputs, _ = KINDS[kind]
    run = started(
        folder, kind, seed, batch_size=12, schedule="cosine", weight_decay=0.1, warmup=0.25
    )
    theirs = trainer.beside(run, to_inputs, folder, STEPS)
    assert_same(trainer.course_of(run), theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_accumulated_gradients_are_those_of_the_whole_batch_on_the_trainer(kind, folder):
    _, to_inputs, _ = KINDS[kind]
    run = started(folder, kind, 0, batch_size=6, micro_batch=4, max_grad_norm=0.5)
    theirs = trainer.beside(run, to_inputs, folder, STEPS)
    assert_same(trainer.course_of(run), theirs)


@pytest.mark.parametrize("kind", [*WEIGHS_TOKENS, "image_classification"])
def test_accumulated_gradients_are_those_that_the_trainer_accumulates(kind, folder):
    """Of the other kinds it adds up the means of micro-batches (BERT's classes, in 5.23), or gives
    each micro-batch the same weight, however many targets it has."""
    _, to_inputs, _ = KINDS[kind]
    run = started(folder, kind, 0, batch_size=6, micro_batch=2)
    theirs = trainer.beside(run, to_inputs, folder, STEPS, micro_batch=2)
    assert_same(trainer.course_of(run), theirs)


# ----------------------------------------------------------------------- learning rates


@pytest.mark.parametrize("steps", [7, 40])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine", "wsd"])
def test_the_rate_of_a_step_is_that_of_transformers_halfway_through_it(schedule, warmup, steps):
    warmup = round(warmup * steps) / steps
    settings = Settings(schedule=schedule, warmup=warmup, decay_fraction=round(0.3 * steps) / steps)
    theirs = trainer.schedule_of(settings, steps)
    for step in range(steps):
        ours = multiplier(schedule, (step + 0.5) / steps, warmup, settings.decay_fraction)
        assert ours == pytest.approx(theirs(step + 0.5), abs=1e-9), step
        neighbours = [theirs(step), theirs(step + 1)]
        assert min(neighbours) - 1e-9 <= ours <= max(neighbours) + 1e-9


def rates_of(make, steps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = make(optimizer)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def test_one_cycle_and_step_are_those_of_torch():
    steps = 1000
    ours = {
        name: [multiplier(name, step / steps, 0.0) for step in range(steps)]
        for name in ("one_cycle", "step")
    }
    one_cycle = rates_of(
        lambda optimizer: lr_scheduler.OneCycleLR(
            optimizer, 1.0, steps, pct_start=ONE_CYCLE_RISE, div_factor=25, final_div_factor=1e9
        ),
        steps,
    )
    assert ours["one_cycle"] == pytest.approx(one_cycle, abs=5 / steps)
    drops = [steps // 2, 3 * steps // 4]
    stepped = rates_of(lambda optimizer: lr_scheduler.MultiStepLR(optimizer, drops, 0.1), steps)
    assert ours["step"] == pytest.approx(stepped)
    assert set(SCHEDULES) == {"constant", "linear", "cosine", "wsd", *ours}, "all are compared"


# ----------------------------------------------------------------------- weight decay


@pytest.mark.parametrize(
    ("family", "auto"),
    [
        ("bert", transformers.AutoModelForSequenceClassification),
        ("bert", transformers.AutoModelForTokenClassification),
        ("gpt2", transformers.AutoModelForCausalLM),
        ("llama", transformers.AutoModelForCausalLM),
        ("t5", transformers.AutoModelForSeq2SeqLM),
        ("vit", transformers.AutoModelForImageClassification),
        ("clip", transformers.AutoModelForImageClassification),
        ("resnet", transformers.AutoModelForImageClassification),
    ],
)
def test_the_same_weights_decay_as_on_the_trainer_but_for_vectors(family, auto, tmp_path):
    """It knows norms by class and name: a ResNet's scales decay there, and CLIP's first token."""
    model = auto.from_pretrained(
        small_models.write(tmp_path / family, family, TEXTS, auto=auto), dtype=torch.float32
    )
    decayed = set()
    for group in parameter_groups(model, Settings(weight_decay=0.1)):
        if group["weight_decay"]:
            decayed |= set(map(id, group["params"]))
    of_trainer = {
        id(model.get_parameter(name)): name
        for name in Trainer.get_decay_parameter_names(None, model)
    }
    assert decayed <= of_trainer.keys()
    vectors = sorted(name for key, name in of_trainer.items() if key not in decayed)
    assert all(model.get_parameter(name).ndim == 1 for name in vectors)
    expected = {"resnet": "normalization.weight", "clip": "class_embedding"}
    assert all(name.endswith(expected[family]) for name in vectors)
