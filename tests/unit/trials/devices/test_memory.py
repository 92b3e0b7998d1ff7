"""What a process may take of a device, and how running out of memory is recognised."""

import errno
from types import SimpleNamespace

import pytest
import torch

from trials.devices import memory
from trials.running.runner import failure_of

GIB = 1 << 30


def test_a_process_is_entitled_to_its_share_without_what_no_tensor_takes():
    assert memory.entitled(80 * GIB, 1.0) == 80 * GIB - memory.CONTEXT_BYTES
    assert memory.entitled(80 * GIB, 0.25) == 20 * GIB - memory.CONTEXT_BYTES
    assert memory.entitled(4 * GIB, 0.125) == GIB // 4  # half of a share that is all context
    assert 4 * (memory.entitled(16 * GIB, 0.25) + memory.CONTEXT_BYTES) <= 16 * GIB


def test_what_is_left_is_less_than_what_is_free_where_the_device_is_shared():
    assert memory.left_bytes(free=60 * GIB, held=5 * GIB, most=20 * GIB) == 15 * GIB
    assert memory.left_bytes(free=3 * GIB, held=5 * GIB, most=20 * GIB) == 3 * GIB
    assert memory.left_bytes(free=60 * GIB, held=21 * GIB, most=20 * GIB) == 0


def test_a_share_of_a_gpu_is_kept_to(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(memory, "_shares", {})
    kept = []
    monkeypatch.setattr(
        torch.cuda, "set_per_process_memory_fraction", lambda *given: kept.append(given)
    )
    described = SimpleNamespace(total_memory=16 * GIB)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: described)
    for device, share in (("cpu", 0.5), ("cuda:0", 1.0), ("cuda:0", 2.0)):
        memory.keep_to_share(device, share)
    assert not kept
    assert memory.entitled_bytes(torch.device("cuda:0")) == int(15.5 * GIB)
    for _ in range(2):
        memory.keep_to_share("cuda:0", 0.25)
    assert kept == [(3.5 / 16, "cuda:0")]
    assert memory.entitled_bytes(torch.device("cuda:0")) == int(3.5 * GIB)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("HIP out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("HIP error: hipErrorOutOfMemory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR\nfailed to alloc a workspace"),
        RuntimeError(
            "CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(&handle)`"
        ),
        RuntimeError("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:118] "
            "DefaultCPUAllocator: can't allocate memory: you tried to"
        ),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:80] "
            "DefaultCPUAllocator: not enough memory: you tried to"
        ),
        MemoryError("Unable to allocate 8.00 GiB for an array"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_memory_that_runs_out_is_told_in_many_ways(error):
    assert memory.is_out_of_memory(error)
    assert failure_of(error).kind == "out_of_memory"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"),
        RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR in a totally local graph"),
        RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"),
        ValueError("out of memory is a fine name for a band"),
        OSError(errno.ENOENT, "No such file or directory"),
    ],
)
def test_other_failures_are_not_taken_for_it(error):
    assert not memory.is_out_of_memory(error)
