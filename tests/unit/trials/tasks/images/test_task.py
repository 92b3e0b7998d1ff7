"""Image classification: images from folders and archives, changed at random from the seed, learnt
and resumed."""

import json
import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from support.running.runs import Lab, reports_of
from trials import tasks
from trials.descriptions.images import METRICS
from trials.tasks.images.image_model import changed

PART = {"kind": "image_classification", "train": "train.npz", "validation": 0.25}
PARAMS = {"learning_rate": 5e-3, "batch_size": 16, "width": 8, "depth": 2}


def images(count=61, seed=0):
    """Bars that lie or stand, in noise."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 60, (count, 12, 12)).astype(np.uint8)
    names = np.array([("lying", "standing")[i % 2] for i in range(count)])
    for row, name in enumerate(names):
        place = rng.integers(2, 10)
        if name == "lying":
            pixels[row, place] = 250
        else:
            pixels[row, :, place] = 250
    return pixels, names


def lab_in(tmp_path):
    pixels, names = images()
    np.savez(tmp_path / "train.npz", images=pixels, labels=names)
    return Lab(tmp_path, PART, PARAMS)


@pytest.fixture
def lab(tmp_path):
    return lab_in(tmp_path)


def write_folder(folder, count=12):
    for number, (pixels, name) in enumerate(zip(*images(count), strict=True)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / name / f"{number:02d}.png")


def test_an_archive_of_grey_images_gets_a_channel(lab):
    data = lab.task(validation="train.npz").prepare({})
    pixels, names = images()
    assert data.labels == ("lying", "standing")
    assert np.array_equal(data.train[..., 0], pixels)
    assert [data.labels[number] for number in data.train_labels] == names.tolist()
    assert data.means == pytest.approx([pixels.mean() / 255])


def test_a_folder_of_images_is_read_in_colour_and_scaled(lab):
    write_folder(lab.folder / "photos")
    data = lab.task(train="photos", validation="photos", size=12).prepare({})
    assert data.train.shape == (12, 12, 12, 3)
    assert np.array_equal(data.train[0, ..., 0], images(12)[0][0])
    assert lab.task(train="photos", validation=0.5, size=6).prepare({}).train.shape[1:] == (6, 6, 3)


def test_the_validation_share_is_stratified(lab):
    data = lab.task().prepare({})
    assert np.bincount(data.validation_labels).tolist() == [8, 7]
    assert len(data.train) == 46


def test_data_that_cannot_be_used_is_told(lab):
    pixels, names = images(10)
    np.savez(lab.folder / "named.npz", pixels=pixels, labels=names)
    np.savez(lab.folder / "floats.npz", images=pixels / 255, labels=names)
    np.savez(lab.folder / "short.npz", images=pixels, labels=names[:5])
    np.savez(lab.folder / "one.npz", images=pixels, labels=["same"] * 10)
    np.savez(lab.folder / "odd.npz", images=pixels[:, :6], labels=["odd"] * 10)
    (lab.folder / "broken.npz").write_text("no archive")
    (lab.folder / "nothing").mkdir()
    (lab.folder / "torn" / "cat").mkdir(parents=True)
    (lab.folder / "torn" / "cat" / "a.png").write_text("no image")
    said = {
        "named.npz": "lacks an array: images",
        "floats.npz": "are float64 of shape (10, 12, 12); give bytes (uint8)",
        "short.npz": "labels of",
        "one.npz": "all training rows have one class, 'same'",
        "broken.npz": "cannot be read as NPZ",
        "absent.npz": "no such file",
        "absent": "there is no folder",
        "nothing": "has no images; put those of each class into a folder of its name",
        "torn": "a.png cannot be read as an image",
    }
    for name, what in said.items():
        assert what in lab.problems(train=name)["task.train"], name
    found = [
        p.what
        for p in tasks.inspect(lab.part(test="odd.npz"), lab.folder)
        if p.where == "task.test"
    ]
    assert any("has 1 class that no training row has: 'odd'" in what for what in found)
    assert any(
        "has images of shape (6, 12, 1), the training images have (12, 12, 1)" in what
        for what in found
    )
    assert "must be at least 1, not 0" in lab.problems(size=0)["task.size"]
    assert lab.problems(test="train.npz") == {}


def test_images_are_mirrored_and_moved_as_the_draws_say():
    image = torch.arange(9, dtype=torch.uint8).reshape(1, 3, 3, 1)
    same = changed(image, torch.tensor([[0.9, 0.5, 0.5]], dtype=torch.float64), flip=True, shift=1)
    assert torch.equal(same, image)
    mirrored = changed(
        image, torch.tensor([[0.1, 0.5, 0.5]], dtype=torch.float64), flip=True, shift=1
    )
    assert torch.equal(mirrored, image.flip(2))
    moved = changed(
        image, torch.tensor([[0.1, 0.99, 0.5]], dtype=torch.float64), flip=False, shift=1
    )
    assert moved[0, :, :, 0].tolist() == [[0, 1, 2], [0, 1, 2], [3, 4, 5]]


def test_a_small_network_learns_its_classes(lab):
    built = lab.task()
    last = reports_of(built.start(lab.setup(epochs=12), built.prepare({})))[-1]
    assert last.metrics["accuracy"] > 0.9
    assert last.metrics.keys() == METRICS


def test_changed_images_differ_from_the_plain_ones(lab):
    built = lab.task()
    data = built.prepare({})
    plain, shifted = (
        reports_of(built.start(lab.setup(f"s{s}", shift=s), data))[0].metrics["train_loss"]
        for s in (0, 3)
    )
    assert plain != shifted


def test_weights_derive_from_the_seed_and_read_only_data_trains(lab):
    built = lab.task()
    data = pickle.loads(pickle.dumps(built.prepare({})))
    data.train.flags.writeable = data.validation.flags.writeable = False
    one, same = (built.start(lab.setup(out), data) for out in ("a", "b"))
    assert torch.equal(one._workload.model.head[1].weight, same._workload.model.head[1].weight)
    path = reports_of(one)[-1].checkpoint
    assert json.loads((path / "images.json").read_text())["labels"] == ["lying", "standing"]
