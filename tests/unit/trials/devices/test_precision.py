"""Which arithmetic a run uses, and what mixed precision leaves as it is."""

import pytest
import torch

from trials.devices import precision
from trials.devices.precision import Precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(("native", "name"), [(True, "bf16"), (False, "fp32")])
def test_auto_takes_bfloat16_on_a_processor_that_has_it(native, name, monkeypatch):
    monkeypatch.setattr(precision, "cpu_has_bf16", lambda: native)
    assert Precision("auto", CPU).name == name
    assert Precision("fp32", CPU).name == "fp32"


def test_matrix_products_are_bfloat16_weights_gradients_and_float32_stay_as_they_are():
    layer = torch.nn.Linear(4, 4)
    arithmetic = Precision("bf16", CPU)
    with arithmetic.autocast():
        out = layer(torch.ones(2, 4))
    assert out.dtype is torch.bfloat16
    out.float().sum().backward()
    assert layer.weight.dtype is layer.weight.grad.dtype is torch.float32
    assert not arithmetic.scales
    with Precision("fp32", CPU).autocast():
        assert torch.nn.Linear(4, 4)(torch.ones(2, 4)).dtype is torch.float32
