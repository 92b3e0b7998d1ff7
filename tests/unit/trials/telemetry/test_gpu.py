"""What a GPU reports of its work, with stand-ins for NVML and for torch's view of the device."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

from trials.tasks.huggingface.templates import _checkpoint_activations
from trials.telemetry.gpu import Gpu, peak_flops, together, training_flops
from unit.trials.loop.test_loop import Points, reports_of, run_of


class NVMLError(Exception):
    """As NVML raises it for what a device does not support."""


class Nvml:
    """Answers like `pynvml`: a utilisation and an energy for each call, or an error where it has
    None."""

    NVMLError = NVMLError

    def __init__(self, utilization=(), millijoules=(), there=True):
        self.utilization, self.millijoules, self.there = iter(utilization), iter(millijoules), there
        self.asked_for = None

    def nvmlInit(self):
        if not self.there:
            raise NVMLError

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self.asked_for = uuid
        return "handle"

    def nvmlDeviceGetUtilizationRates(self, handle):
        return SimpleNamespace(gpu=self._next(self.utilization))

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        return self._next(self.millijoules)

    def _next(self, answers):
        answer = next(answers, None)
        if answer is None:
            raise NVMLError
        return answer


@pytest.fixture
def a100(monkeypatch):
    described = SimpleNamespace(name="NVIDIA A100-SXM4-80GB", uuid="1234-abcd")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: described)
    return torch.device("cuda:0")


def model():
    """1000 weights of a layer and an embedding of 5000."""
    return torch.nn.ModuleDict(
        {"words": torch.nn.Embedding(500, 10), "layer": torch.nn.Linear(10, 100, bias=False)}
    )


def test_a_run_on_the_cpu_has_nothing_to_tell():
    gpu = Gpu(torch.device("cpu"), "fp32", Nvml([50], [1000]))
    gpu.sample()
    assert gpu.read(1000.0) == {}


def test_utilisation_is_the_mean_of_the_samples_since_the_report_before(a100):
    gpu = Gpu(a100, "bf16", Nvml([40, 80, 60, 10]))
    gpu.sample()
    gpu.sample()
    assert gpu.read(0.0)["gpu_utilization"] == pytest.approx(0.6)
    assert gpu.read(0.0)["gpu_utilization"] == pytest.approx(0.1)


def test_energy_is_what_was_used_since_the_report_before(a100):
    gpu = Gpu(a100, "bf16", Nvml([], [5_000, 12_000, 12_500]))
    assert gpu.read(0.0)["energy_joules"] == pytest.approx(7.0)
    assert gpu.read(0.0)["energy_joules"] == pytest.approx(0.5)


def test_the_device_is_found_by_what_torch_calls_it(a100):
    nvml = Nvml()
    Gpu(a100, "bf16", nvml)
    assert nvml.asked_for == b"GPU-1234-abcd"


def test_what_the_device_does_not_tell_is_left_out(a100):
    for nvml in (Nvml([], []), Nvml(there=False)):
        gpu = Gpu(a100, "bf16", nvml)
        assert gpu.read(1e6) == {}
        gpu.take_flops(6000.0)
        assert set(gpu.read(1e6)) == {"mfu"}


def test_mfu_is_the_share_of_the_peak_that_real_tokens_used(a100):
    gpu = Gpu(a100, "bf16", Nvml())
    assert gpu.wants_flops
    gpu.take_flops(6000.0)
    assert not gpu.wants_flops
    assert gpu.read(312e12 / 6000 / 4)["mfu"] == pytest.approx(0.25)


def test_several_gpus_tell_the_mean_of_their_shares_and_the_sum_of_their_energies():
    readings = [
        {"mfu": 0.5, "gpu_utilization": 1.0, "energy_joules": 3.0},
        {"mfu": 0.25, "energy_joules": 4.0},
    ]
    assert together(readings) == {"mfu": 0.375, "energy_joules": 7.0}
    assert together([{}]) == {}


PRODUCT = 2 * 10 * 100
"""Multiplications and additions of one token with the weights of `model`'s layer."""


def words_loss(words):
    return words["layer"](words["words"](torch.tensor([1, 2, 3]))).sum()


def test_a_trained_weight_costs_two_passes_backward_and_a_frozen_one_costs_one():
    words = model()
    assert training_flops(words, lambda: words_loss(words)) == 3 * PRODUCT * 3
    words["layer"].weight.requires_grad_(False)
    assert training_flops(words, lambda: words_loss(words)) == 3 * PRODUCT * 2


def test_nothing_is_passed_back_to_what_is_frozen_below_all_that_trains():
    words = model()
    words["words"].weight.requires_grad_(False)
    assert training_flops(words, lambda: words_loss(words)) == 3 * PRODUCT * 2


def test_every_place_of_an_image_is_computed():
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Flatten(), torch.nn.Linear(200, 4)
    )
    convolution, linear = 2 * 25 * 8 * 3 * 9, 2 * 200 * 4  # 5 x 5 pixels
    found = training_flops(network, lambda: network(torch.ones(2, 3, 5, 5)).sum())
    assert found == 2 * (2 * convolution + 3 * linear)  # images have no gradient


def test_what_is_computed_again_to_save_memory_is_not_counted():
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
    )
    bert = transformers.BertForSequenceClassification(config)

    def counted():
        return training_flops(bert, lambda: bert(torch.ones(2, 6, dtype=torch.int64)).logits.sum())

    plain = counted()
    _checkpoint_activations(bert)
    with FlopCounterMode(display=False) as everything:
        bert(torch.ones(2, 6, dtype=torch.int64)).logits.sum().backward()
    assert everything.get_total_flops() > plain
    assert counted() == plain > 0


def test_counting_leaves_no_trace_in_a_run(tmp_path):
    def trained(name, peak):
        workload = Points()
        workload.model = torch.nn.Sequential(
            torch.nn.Linear(2, 8),
            torch.nn.BatchNorm1d(8),
            torch.nn.Dropout(0.5),
            torch.nn.Linear(8, 2),
        )
        torch.manual_seed(0)
        for parameter in workload.model.parameters():
            torch.nn.init.uniform_(parameter)
        run = run_of(workload, tmp_path / name, {"steps": 3, "report_every": 3}, learning_rate=0.1)
        run._telemetry.gpu._peak = peak
        return reports_of(run)[-1].metrics, workload.model.state_dict()

    counted, weights = trained("counted", 1e9)
    plain, expected = trained("plain", None)
    per_point = (
        2 * 2 * 8 * 2 + 3 * 2 * 8 * 2
    ) / 2  # each point is a token with as much padding again
    assert counted["mfu"] == pytest.approx(per_point * counted["tokens_per_second"] / 1e9)
    assert "mfu" not in plain
    for name, tensor in expected.items():
        assert torch.equal(weights[name], tensor), name


@pytest.mark.parametrize(
    ("name", "precision", "peak"),
    [
        ("NVIDIA A100-SXM4-80GB", "bf16", 312e12),
        ("NVIDIA A100-PCIE-40GB", "fp32", 19.5e12),
        ("NVIDIA H100 PCIe", "bf16", 756e12),
        ("NVIDIA H100 80GB HBM3", "bf16", 989e12),
        ("NVIDIA H200", "bf16", 989e12),
        ("NVIDIA L4", "fp16", 121e12),
        ("NVIDIA L40S", "bf16", 362e12),
        ("NVIDIA A10G", "bf16", 70e12),
        ("Tesla T4", "fp16", 65e12),
        ("Tesla V100-SXM2-16GB", "fp16", 125e12),
        ("NVIDIA GeForce RTX 4090", "bf16", 165e12),
        ("NVIDIA RTX A1000", "bf16", None),
        ("NVIDIA B200", "fp32", None),
    ],
)
def test_the_peak_of_a_gpu_is_found_by_its_name_and_unknown_ones_have_none(name, precision, peak):
    assert peak_flops(name, precision) == peak


def test_a_gpu_without_a_known_peak_has_no_mfu(monkeypatch, a100):
    other = SimpleNamespace(name="NVIDIA RTX A1000", uuid="1")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: other)
    gpu = Gpu(a100, "bf16", Nvml())
    assert not gpu.wants_flops
    gpu.take_flops(6000.0)
    assert gpu.read(1e6) == {}
