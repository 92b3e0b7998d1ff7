"""Copies of a GPU's tensors in host memory: exact, and of the moment they were asked for."""

import pytest
import torch

from trials.checkpoints.weights import host_copy
from trials.devices.processes import use

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def test_a_copy_holds_what_was_there_whatever_the_device_does_next():
    tensors = {
        "a": torch.randn(4096, 1024, device="cuda"),
        "b": torch.randn(1000, device="cuda", dtype=torch.bfloat16),
    }
    tied = {**tensors, "c": tensors["a"]}
    expected = {name: tensor.cpu().clone() for name, tensor in tied.items()}
    copied = host_copy({"state": [tied]})["state"][0]
    for tensor in tensors.values():
        tensor.zero_()
    assert copied["a"] is copied["c"]
    for name, tensor in copied.items():
        assert tensor.device.type == "cpu"
        assert tensor.is_pinned()
        assert torch.equal(tensor, expected[name])


@pytest.mark.parametrize("number", range(torch.cuda.device_count()))
def test_a_copy_of_any_gpu_waits_for_that_gpu(number):
    use(torch.device("cuda:0"))
    elsewhere = torch.device("cuda", number)
    matrix = torch.randn(4096, 4096, device=elsewhere)
    product = matrix
    for _ in range(50):  # work that continues while the copy is asked for
        product = (product @ matrix).tanh()
    copied = host_copy({"product": product})["product"]
    product.zero_()
    held = copied.clone()
    torch.cuda.synchronize(elsewhere)
    assert torch.equal(copied, held)
    assert copied.abs().sum() > 0


@pytest.mark.parametrize("number", range(torch.cuda.device_count()))
def test_a_device_with_a_number_becomes_the_current_one(number):
    use(torch.device("cuda", number))
    assert torch.cuda.current_device() == number
    assert torch.ones(1, device="cuda").device.index == number
    use(torch.device("cuda:0"))
