"""Exported models are compared with the model before they are used."""

from __future__ import annotations

import pytest
import torch

from trials.final import export
from trials.final.export import ExportError, Portable


class Changing(torch.nn.Module):
    """Computes something else each time."""

    calls = 0

    def forward(self, tokens, mask):
        self.calls += 1
        return tokens.float() * self.calls


def test_an_export_that_computes_something_else_is_refused(tmp_path):
    samples = [tuple(torch.ones(4, 7, dtype=torch.long) for _ in range(2))]
    with pytest.raises(ExportError, match="logits differ by"):
        export.export(Portable(Changing(), ()), samples, tmp_path)
