"""The GPU of a process, on machines without one: why torch cannot use it."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from trials.devices import gpu
from trials.devices.memory import keep_to_share

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")

OLD = "The NVIDIA driver on your system is too old (found version 11040).\nPlease update it"


def raising(text: str) -> Any:
    def raises(*arguments: Any, **more: Any) -> None:
        raise RuntimeError(text)

    return raises


def test_a_torch_that_is_built_for_cpus_is_named() -> None:
    found = gpu.fault("cuda:0")
    assert found is not None
    assert f"torch {torch.__version__} is built without CUDA: install one" in found


def test_a_torch_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    found = gpu.fault("cuda:0")
    assert found is not None
    assert found.startswith("torch cannot be imported")
    assert not gpu.can_be_used()
    assert gpu.default_device() == "cpu"


def test_the_driver_says_what_is_wrong_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.backends.cuda.is_built", lambda: True)
    monkeypatch.setenv(gpu.VISIBLE, "7")
    monkeypatch.setattr("torch.ones", raising(OLD))
    found = gpu.fault("cuda:0")
    assert found is not None
    assert "cannot use cuda:0 (CUDA_VISIBLE_DEVICES: 7): The NVIDIA driver" in found
    assert "\n" not in found


def test_a_gpu_whose_memory_others_hold_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.backends.cuda.is_built", lambda: True)
    monkeypatch.setattr("torch.ones", raising("CUDA out of memory"))
    assert gpu.fault("cuda:0") is None


@pytest.mark.parametrize(
    "text",
    [
        "Torch not compiled with CUDA enabled",
        "Found no NVIDIA driver on your system.",
        "No supported gpu backend found!",
        "AssertionError\n    assert torch.cuda.is_available()",
    ],
)
def test_a_failure_for_want_of_a_gpu_has_that_cause(text: str) -> None:
    assert "built without CUDA" in (gpu.fault_behind(text) or "")


def test_other_failures_have_other_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu.fault_behind("KeyError: 'loss'") is None
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert gpu.fault_behind("CUDA error: device-side assert triggered") is None


def test_code_that_has_torch_for_its_data_alone_may_share_a_gpu() -> None:
    keep_to_share("cuda:0", 0.5)


def test_the_gpus_of_a_machine_are_those_that_are_not_hidden(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number in range(2):
        (tmp_path / f"0000:0{number}:00.0").mkdir()
        text = "Model: \t\t NVIDIA H100\nIRQ: 7\n"
        (tmp_path / f"0000:0{number}:00.0" / "information").write_text(text)
    monkeypatch.setattr(gpu, "_MODELS", tmp_path)
    monkeypatch.delenv(gpu.VISIBLE, raising=False)
    assert (gpu.count(), gpu.name()) == (2, "NVIDIA H100")
    monkeypatch.setenv(gpu.VISIBLE, "1")
    assert gpu.count() == 1
    for hidden in ("", "-1"):
        monkeypatch.setenv(gpu.VISIBLE, hidden)
        assert gpu.count() == 0
