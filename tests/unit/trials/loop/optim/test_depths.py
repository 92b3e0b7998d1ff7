"""The depth of parameters, by their names."""

import pytest
import torch
from torch import nn

from trials.loop.optim.depths import depths
from unit.trials.loop.optim.test_optimizers import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_depth_counts_from_the_embeddings_through_the_layers_to_the_head(family):
    model = family()
    found = depths(model.named_parameters())
    assert set(found.values()) == {0, 1, 2, 3}
    embeddings = {
        f"{name}.weight"
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding)
    }
    assert all(found[name] == 0 for name in embeddings)
    assert all(found[name] == 3 for name in found if name.startswith(("classifier", "score")))
    for layer, depth in ((".0.", 1), (".1.", 2)):
        inside = [name for name in found if layer in name]
        assert inside
        assert {found[name] for name in inside} == {depth}


def test_the_outermost_number_counts_where_layers_stand_in_stages():
    names = ["stem.weight", "stages.0.layers.1.weight", "stages.1.layers.0.weight", "head.weight"]
    found = depths((name, torch.zeros(2, 2)) for name in names)
    assert list(found.values()) == [0, 1, 2, 3]
