"""Image classification with a pretrained model: its size and brightness, its checkpoints, and what
it refuses."""

import json

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from support.files import small_models
from support.running.runs import Lab, reports_of
from trials import tasks
from trials.contract import TaskError
from trials.data.workload import Batch
from trials.descriptions.images import METRICS
from trials.descriptions.models import Pretrained
from trials.devices.precision import Precision
from trials.loop import captured
from trials.tasks.images import processor as image_processor
from unit.trials.tasks.images.test_task import PART, images, write_folder

PARAMS = {"learning_rate": 5e-3, "batch_size": 16}
HALF = (0.5, 0.5, 0.5)
MODELS = ("vit", "resnet")


def lab_in(tmp_path):
    pixels, names = images()
    np.savez(tmp_path / "train.npz", images=pixels, labels=names)
    for name in MODELS:
        small_models.write(tmp_path / name, name, auto=transformers.AutoModelForImageClassification)
    image_processor.write(tmp_path / "vit", 16, HALF, HALF)
    return Lab(tmp_path, {**PART, "model": "vit"}, PARAMS)


@pytest.fixture
def lab(tmp_path):
    return lab_in(tmp_path)


def test_images_reach_the_model_as_its_processor_says(lab):
    workload = lab.task().workload(
        lab.task().prepare({}), lab.task().SETTINGS.parse({}), lab.setup()
    )
    seen = []
    workload.model.register_forward_pre_hook(
        lambda _, __, given: seen.append(given["pixel_values"]), with_kwargs=True
    )
    workload.loss_sum(workload.batch(np.arange(3)))
    assert seen[0].shape == (3, 3, 16, 16)
    assert seen[0].min() >= -1
    assert seen[0].max() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("other", [(8, HALF, HALF), (16, (0.4,) * 3, HALF), (16, HALF, (0.2,) * 3)])
def test_models_that_differ_in_their_processor_alone_share_no_captured_steps(lab, other):
    task = lab.task()
    data, settings = task.prepare({}), task.SETTINGS.parse({})
    one, same = (task.workload(data, settings, lab.setup()) for _ in range(2))
    image_processor.write(lab.folder / "vit", *other)
    another = task.workload(data, settings, lab.setup())
    precision = Precision("fp32", torch.device("cpu"))
    keys = [captured._kind(each, settings, precision) for each in (one, same, another)]
    assert keys[0] == keys[1] != keys[2]


def test_a_folder_of_images_is_scaled_to_the_models_size_unless_one_is_stated(lab):
    write_folder(lab.folder / "photos")
    assert lab.task(train="photos").prepare({}).train.shape[1:] == (16, 16, 3)
    assert lab.task(train="photos", size=8).prepare({}).train.shape[1:] == (8, 8, 3)


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
def test_processors_tell_their_wishes_in_several_ways(lab, told, expected):
    (lab.folder / "vit" / image_processor.FILE).write_text(json.dumps(told))
    found = image_processor.read(Pretrained(str(lab.folder / "vit")))
    assert (found.side, found.means, found.deviations) == expected


@pytest.mark.parametrize(("rescaled", "brightest"), [(True, 1.0), (False, 255.0)])
def test_images_that_are_not_to_be_normalised_reach_the_model_as_they_are(lab, rescaled, brightest):
    told = {
        "do_normalize": False,
        "do_rescale": rescaled,
        "size": 8,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (lab.folder / "vit" / image_processor.FILE).write_text(json.dumps(told))
    built = lab.task()
    data = built.prepare({})
    workload = built.workload(data, built.SETTINGS.parse({}), lab.setup())
    (lab.folder / "written").mkdir()
    workload.write(lab.folder / "written", workload.weights())
    written = image_processor.read(Pretrained(str(lab.folder / "written")))
    assert written.means == (0.0, 0.0, 0.0)
    assert [0.25 / value for value in written.deviations] == pytest.approx([0.25 * brightest] * 3)


def test_without_a_processor_the_training_images_tell_their_brightness(lab):
    data = lab.task(model="resnet").prepare({})
    run = lab.task(model="resnet").start(lab.setup(), data)
    assert image_processor.read(
        Pretrained(str(lab.folder / "resnet"))
    ) == image_processor.Processing(None, None, None)
    written = image_processor.read(Pretrained(str(reports_of(run)[-1].checkpoint)))
    assert written.means == pytest.approx([data.means[0]] * 3)


@pytest.mark.parametrize("model", MODELS)
def test_a_pretrained_model_learns(lab, model):
    built = lab.task(model=model)
    reports = reports_of(built.start(lab.setup(epochs=4), built.prepare({})))
    assert reports[-1].metrics["train_loss"] < reports[0].metrics["train_loss"]
    assert reports[-1].metrics.keys() == METRICS


@pytest.mark.parametrize("model", MODELS)
def test_a_checkpoint_is_a_model_that_transformers_loads_with_its_processor(lab, model):
    built = lab.task(model=model)
    run = built.start(lab.setup(), built.prepare({}))
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


def test_what_does_not_fit_a_pretrained_model_is_refused(lab):
    built = lab.task()
    with pytest.raises(TaskError, match=r"settings\.depth: applies to the small network"):
        built.start(lab.setup(depth=5), built.prepare({}))
    np.savez(
        lab.folder / "two.npz", images=np.zeros((20, 4, 4, 2), np.uint8), labels=["a", "b"] * 10
    )
    with pytest.raises(TaskError, match="reads images with 3 channels, and these have 2"):
        lab.task(train="two.npz").start(lab.setup(), lab.task(train="two.npz").prepare({}))
    with pytest.raises(TaskError, match=r"task\.model: must be a hub id or a local folder"):
        lab.task(model="scratch")
    (lab.folder / "vit" / image_processor.FILE).write_text(
        json.dumps({"size": {"height": 8, "width": 16}})
    )
    found = tasks.inspect(lab.part(), lab.folder)
    assert "reads images of 8 x 16 pixels; choose one that reads squares" in found[0].what


def test_a_model_that_classifies_no_images_is_told(lab):
    transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=280).save_pretrained(
        lab.folder / "gpt2"
    )
    built = lab.task(model="gpt2")
    with pytest.raises(TaskError, match=r"task\.model: .*gpt2' cannot be loaded"):
        built.start(lab.setup(), built.prepare({}))
