"""Copies of a GPU's tensors in host memory: exact, and of the moment they were asked for."""

from __future__ import annotations

import pytest
import torch

from trials.weights import host_copy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def test_a_copy_holds_what_was_there_whatever_the_device_does_next():
    tensors = {"a": torch.randn(4096, 1024, device="cuda"), "b": torch.randn(1000, device="cuda", dtype=torch.bfloat16)}
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
