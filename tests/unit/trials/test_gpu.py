"""What a GPU tells of its work, with a stand-in for NVML and for torch's description of the device."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from trials.gpu import Gpu, flops_per_token, peak_flops


class NVMLError(Exception):
    """As NVML raises it for what a device does not support."""


class Nvml:
    """Answers like `pynvml`: a utilisation and an energy for each call, or an error where it has None."""

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
    return torch.nn.ModuleDict({"words": torch.nn.Embedding(500, 10), "layer": torch.nn.Linear(10, 100, bias=False)})


def test_a_run_on_the_cpu_has_nothing_to_tell():
    gpu = Gpu(torch.device("cpu"), model(), "fp32", Nvml([50], [1000]))
    gpu.sample()
    assert gpu.read(1000.0) == {}


def test_utilisation_is_the_mean_of_the_samples_since_the_report_before(a100):
    gpu = Gpu(a100, model(), "bf16", Nvml([40, 80, 60, 10]))
    gpu.sample()
    gpu.sample()
    assert gpu.read(0.0)["gpu_utilization"] == pytest.approx(0.6)
    assert gpu.read(0.0)["gpu_utilization"] == pytest.approx(0.1)


def test_energy_is_what_was_used_since_the_report_before(a100):
    gpu = Gpu(a100, model(), "bf16", Nvml([], [5_000, 12_000, 12_500]))
    assert gpu.read(0.0)["energy_joules"] == pytest.approx(7.0)
    assert gpu.read(0.0)["energy_joules"] == pytest.approx(0.5)


def test_the_device_is_found_by_what_torch_calls_it(a100):
    nvml = Nvml()
    Gpu(a100, model(), "bf16", nvml)
    assert nvml.asked_for == b"GPU-1234-abcd"


def test_what_the_device_does_not_tell_is_left_out(a100):
    assert set(Gpu(a100, model(), "bf16", Nvml([], [])).read(1e6)) == {"mfu"}
    assert set(Gpu(a100, model(), "bf16", Nvml(there=False)).read(1e6)) == {"mfu"}


def test_mfu_is_the_share_of_the_peak_that_real_tokens_used(a100):
    gpu = Gpu(a100, model(), "bf16", Nvml())
    assert gpu.read(312e12 / 6000 / 4)["mfu"] == pytest.approx(0.25)


def test_a_frozen_weight_is_only_multiplied_forwards_and_an_embedding_not_at_all():
    half = model()
    assert flops_per_token(half) == 6000
    half["layer"].weight.requires_grad_(False)
    assert flops_per_token(half) == 2000


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
    assert Gpu(a100, model(), "bf16", Nvml()).read(1e6) == {}
