"""The memory that a captured graph reads, and the random state around a capture."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from trials.devices.graphs import RandomState, Reads


class KeepsOneLength(nn.Module):
    """Adds positions that it makes anew for another length, as some rotary embeddings do."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.kept = torch.zeros(0)

    def forward(self, x):
        if len(self.kept) != len(x):
            self.kept = torch.arange(float(len(x)))
        return (x * self.weight + self.kept[:]).relu()


@pytest.mark.parametrize("trains", [True, False])
def test_what_a_model_keeps_of_one_length_stays_where_a_graph_reads_it(trains):
    model, short = KeepsOneLength(), torch.ones(3)
    model(short)
    with torch.inference_mode(not trains), Reads() as reads:
        loss = model(short).sum()
        if trains:
            torch.autograd.grad(loss, [model.weight])
    read = {storage.data_ptr() for storage in reads.held.values()}
    assert read >= {each.data_ptr() for each in (short, model.weight, model.kept)}
    assert len(read) == 3, "nothing that it made itself"
    kept = model.kept.data_ptr()
    model(torch.ones(5))
    found = [each for each in reads.held.values() if each.data_ptr() == kept]
    assert torch.tensor([], dtype=torch.float32).set_(found[0]).tolist() == [0, 1, 2]


def drawn():
    return random.random(), np.random.random(), np.random.normal(), torch.rand(()).item()


def test_all_generators_draw_again_what_they_drew_before():
    np.random.normal()  # leaves a second number for the next call
    state = RandomState(torch.device("cpu"))
    assert not state.has_drawn_on_host()
    before = drawn()
    assert state.has_drawn_on_host()
    state.restore()
    assert not state.has_drawn_on_host()
    assert drawn() == before
