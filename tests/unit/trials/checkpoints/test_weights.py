"""Copies in host memory: what a checkpoint that is written later is written from."""

import pytest
import torch
from safetensors.torch import load_file, load_model
from torch import nn

from trials.checkpoints import weights
from trials.checkpoints.weights import host_copy
from trials.loop import saves
from trials.tasks.huggingface import lora


class Tied(nn.Module):
    """Two layers of one matrix, as a language model has its embeddings, and a buffer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("counted", torch.tensor(7))


def test_a_copy_does_not_follow_the_original():
    made = {"a": torch.ones(2, requires_grad=True), "list": [torch.zeros(1), ("text", 3)]}
    copied = host_copy(made)
    with torch.no_grad():
        made["a"].add_(1)
        made["list"][0].add_(1)
    made["list"].append("more")
    assert copied["a"].tolist() == [1, 1]
    assert not copied["a"].requires_grad
    assert copied["list"] == [torch.zeros(1), ("text", 3)]


@pytest.mark.parametrize(
    "make", [lambda t: t, lambda t: t.T, lambda t: t[:, 1:], lambda t: t.expand(2, 3, 4)]
)
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_copies_have_the_same_numbers_bit_for_bit(make, kind):
    tensor = make((torch.randn(3, 4) * 5).to(kind))
    copied = host_copy(tensor)
    assert torch.equal(copied, tensor)
    assert (copied.dtype, copied.shape) == (tensor.dtype, tensor.shape)


def test_tied_weights_are_copied_and_written_once(tmp_path):
    model = Tied()
    copied = host_copy({weights.MODEL: model.state_dict()})
    tensors = copied[weights.MODEL]
    assert tensors["first.weight"] is tensors["second.weight"]
    weights.write(copied, tmp_path)
    assert set(load_file(tmp_path / weights.MODEL)) == {
        "first.weight",
        "first.bias",
        "second.bias",
        "counted",
    }
    other = Tied()
    load_model(other, tmp_path / weights.MODEL)
    assert torch.equal(other.second.weight, model.first.weight)


@pytest.mark.parametrize(
    "changes", [{}, {"ema": 0.9}, {"lora": True, "lora_rank": 2}], ids=["plain", "ema", "lora"]
)
def test_a_run_that_goes_on_from_a_save_in_the_background_is_bit_identical(
    lab, without_timings, monkeypatch, changes
):
    settings = {"batch_size": 16, "dropout": 0.2, "learning_rate": 3e-3, **changes}
    task, budget = lab.task(), {"steps": 12, "report_every": 2}
    data = task.prepare(settings)
    expected = [item for item in task.start(lab.setup("a", budget, **settings), data) if item]
    monkeypatch.setattr(saves, "WORTH_S", 0.0)
    monkeypatch.setattr(saves, "SHARE", 0.0)
    first = task.start(lab.setup("b", budget, **settings), data)
    items = iter(first)
    while first.position.step < 7:
        next(items)
    first.save()
    for _ in range(2):  # the thread writes what was there, while training goes on
        next(items)
    first.close()
    second = task.start(
        lab.setup("b", budget, resume_from=lab.folder / "b" / "step-7", **settings), data
    )
    rest = [item for item in second if item]
    assert without_timings(rest) == without_timings(expected[-len(rest) :])
    file = lora.ADAPTERS if settings.get("lora") else weights.MODEL
    a, b = (load_file(lab.folder / out / "last" / file) for out in ("a", "b"))
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_every_gpu_that_tensors_are_copied_from_is_waited_for_by_its_number(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: waited.append(device))
    devices = {torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")}
    weights.wait_for(devices)
    assert set(waited) == {torch.device("cuda:0"), torch.device("cuda:1")}
