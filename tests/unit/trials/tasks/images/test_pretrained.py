"""Image classification with a pretrained model: its size and brightness, its checkpoints, and what
it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from support.running.runs import reports_of
from trials import tasks
from trials.contract import Setup, TaskError
from trials.data.workload import Batch
from trials.descriptions.images import METRICS
from trials.descriptions.models import Pretrained
from trials.running.report_grid import budget_from
from trials.tasks.images import processor as image_processor
from unit.trials.tasks.images.test_task import images, write_folder

PARAMS = {"learning_rate": 5e-3, "batch_size": 16}
HALF = (0.5, 0.5, 0.5)
CONFIGS = {
    "vit": transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=16,
        patch_size=4,
    ),
    "resnet": transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_channels=3
    ),
}


@pytest.fixture
def folder(tmp_path):
    pixels, names = images()
    np.savez(tmp_path / "train.npz", images=pixels, labels=names)
    for name, config in CONFIGS.items():
        torch.manual_seed(0)
        transformers.AutoModelForImageClassification.from_config(config).save_pretrained(
            tmp_path / name
        )
    image_processor.write(tmp_path / "vit", 16, HALF, HALF)
    return tmp_path


def part(**changes):
    return {
        "kind": "image_classification",
        "train": "train.npz",
        "validation": 0.25,
        "model": "vit",
        **changes,
    }


def task(folder, **changes):
    return tasks.load(part(**changes), folder)


def setup(folder, out="run", epochs=1, resume_from=None, **params):
    return Setup(
        {**PARAMS, **params}, 5, budget_from({"epochs": epochs}), folder / out, resume_from
    )


def test_images_reach_the_model_as_its_processor_says(folder):
    workload = task(folder).workload(
        task(folder).prepare({}), task(folder).SETTINGS.parse({}), setup(folder)
    )
    seen = []
    workload.model.register_forward_pre_hook(
        lambda _, __, given: seen.append(given["pixel_values"]), with_kwargs=True
    )
    workload.loss_sum(workload.batch(np.arange(3)))
    assert seen[0].shape == (3, 3, 16, 16)
    assert seen[0].min() >= -1
    assert seen[0].max() == pytest.approx(1, abs=0.1)


def test_a_folder_of_images_is_scaled_to_the_models_size_unless_one_is_stated(folder):
    write_folder(folder / "photos")
    assert task(folder, train="photos").prepare({}).train.shape[1:] == (16, 16, 3)
    assert task(folder, train="photos", size=8).prepare({}).train.shape[1:] == (8, 8, 3)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"size": 20, "image_mean": [0.5], "image_std": [0.25]}, (20, (0.5,), (0.25,))),
        (
            {
                "size": {"shortest_edge": 32},
                "crop_size": {"height": 24, "width": 24},
                "do_center_crop": True,
            },
            (24, None, None),
        ),
        ({"do_normalize": False, "image_mean": [0.5], "image_std": [0.5]}, (16, (0.0,), (1.0,))),
        ({"do_normalize": False, "do_rescale": False}, (16, (0.0,), (1 / 255,))),
        (
            {"rescale_factor": 2 / 255, "image_mean": [1.0], "image_std": [0.5]},
            (16, (0.5,), (0.25,)),
        ),
    ],
)
def test_processors_tell_their_wishes_in_several_ways(folder, told, expected):
    (folder / "vit" / image_processor.FILE).write_text(json.dumps(told))
    found = image_processor.read(Pretrained(str(folder / "vit")))
    assert (found.side, found.means, found.deviations) == expected


@pytest.mark.parametrize(("rescaled", "brightest"), [(True, 1.0), (False, 255.0)])
def test_images_that_are_not_to_be_normalised_reach_the_model_as_they_are(
    folder, rescaled, brightest
):
    told = {
        "do_normalize": False,
        "do_rescale": rescaled,
        "size": 8,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (folder / "vit" / image_processor.FILE).write_text(json.dumps(told))
    built = task(folder)
    data = built.prepare({})
    workload = built.workload(data, built.SETTINGS.parse({}), setup(folder))
    (folder / "written").mkdir()
    workload.write(folder / "written", workload.weights())
    written = image_processor.read(Pretrained(str(folder / "written")))
    assert written.means == (0.0, 0.0, 0.0)
    assert [0.25 / value for value in written.deviations] == pytest.approx([0.25 * brightest] * 3)


def test_without_a_processor_the_training_images_tell_their_brightness(folder):
    data = task(folder, model="resnet").prepare({})
    run = task(folder, model="resnet").start(setup(folder), data)
    assert image_processor.read(Pretrained(str(folder / "resnet"))) == image_processor.Processing(
        None, None, None
    )
    written = image_processor.read(Pretrained(str(reports_of(run)[-1].checkpoint)))
    assert written.means == pytest.approx([data.means[0]] * 3)


@pytest.mark.parametrize("model", list(CONFIGS))
def test_a_pretrained_model_learns_and_is_resumed_bit_for_bit(folder, model, without_timings):
    built = task(folder, model=model)
    data, params = built.prepare({}), {"flip": True, "shift": 1}
    whole = reports_of(built.start(setup(folder, "whole", 4, **params), data))
    first = built.start(setup(folder, "parts", 4, **params), data)
    items = iter(first)
    for _ in range(6):
        next(items)
    again = reports_of(built.start(setup(folder, "parts", 4, first.save(), **params), data))
    assert len(again) == 3
    assert without_timings(again) == without_timings(whole)[1:]
    assert whole[-1].metrics["train_loss"] < whole[0].metrics["train_loss"]
    assert whole[-1].metrics.keys() == METRICS


def test_micro_batches_add_up(folder):
    built = task(folder)
    data = built.prepare({})
    params = {"optimizer": "sgd", "learning_rate": 0.05, "flip": True}
    losses = [
        [
            r.metrics["train_loss"]
            for r in reports_of(
                built.start(setup(folder, f"m{m}", 2, micro_batch=m, **params), data)
            )
        ]
        for m in (None, 5)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


@pytest.mark.parametrize("model", list(CONFIGS))
def test_a_checkpoint_is_a_model_that_transformers_loads_with_its_processor(folder, model):
    built = task(folder, model=model)
    run = built.start(setup(folder), built.prepare({}))
    path = reports_of(run)[-1].checkpoint
    transformers.logging.disable_progress_bar()
    loaded = transformers.AutoModelForImageClassification.from_pretrained(path).eval()
    assert loaded.config.id2label == {0: "lying", 1: "standing"}
    side = 16 if model == "vit" else 12
    image = Image.fromarray(images()[0][0]).convert("RGB")
    told = json.loads((path / image_processor.FILE).read_text())
    assert told["size"] == {"height": side, "width": side}
    inputs = np.asarray(image.resize((side, side)), dtype=np.float64) / 255
    inputs = (inputs - np.array(told["image_mean"])) / np.array(told["image_std"])
    workload = run._workload
    workload.model.eval()
    with torch.inference_mode():
        there = loaded(pixel_values=torch.from_numpy(inputs).permute(2, 0, 1)[None].float()).logits
        pixels = torch.from_numpy(images()[0][:1])[..., None]
        here = workload.outputs(Batch({"images": pixels}, torch.zeros(1), tokens=1, cells=1))
    assert torch.allclose(here, there, atol=0.02), "but for rounding to bytes while scaling"


def test_what_does_not_fit_a_pretrained_model_is_refused(folder):
    built = task(folder)
    with pytest.raises(TaskError, match=r"settings\.depth: applies to the small network"):
        built.start(setup(folder, depth=5), built.prepare({}))
    np.savez(folder / "two.npz", images=np.zeros((20, 4, 4, 2), np.uint8), labels=["a", "b"] * 10)
    with pytest.raises(TaskError, match="reads images with 3 channels, and these have 2"):
        task(folder, train="two.npz").start(
            setup(folder), task(folder, train="two.npz").prepare({})
        )
    with pytest.raises(TaskError, match=r"task\.model: must be a hub id or a local folder"):
        task(folder, model="scratch")
    (folder / "vit" / image_processor.FILE).write_text(
        json.dumps({"size": {"height": 8, "width": 16}})
    )
    found = tasks.inspect(part(), folder)
    assert "reads images of 8 x 16 pixels; choose one that reads squares" in found[0].what


def test_a_model_that_classifies_no_images_is_told(folder):
    transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=280).save_pretrained(
        folder / "gpt2"
    )
    built = task(folder, model="gpt2")
    with pytest.raises(TaskError, match=r"task\.model: .*gpt2' cannot be loaded"):
        built.start(setup(folder), built.prepare({}))
