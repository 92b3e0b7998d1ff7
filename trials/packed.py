"""Packed samples: several short ones end to end in one row of a batch, each computed as if it were alone.

Positions begin anew with every sample, and a mask lets a token see those of its own sample alone (Krell et al. 2021,
arXiv 2107.02027). `demand` makes sure that a model heeds both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import transformers

from trials.batching import Ints, Sequences
from trials.contract import Problem, TaskError
from trials.memory import is_out_of_memory
from trials.packing import Layout
from trials.residence import Residence
from trials.samples import Samples
from trials.workload import Batch

SEGMENTS = "segments"
"""The input that tells which sample of its row a cell belongs to: from 1 on, and 0 for padding."""
TOLERANCE = 1e-3
"""The largest difference between a packed and a plain score that may be rounding, as a share of the largest score."""
PROBE = (3, 5, 2)
"""The lengths of the samples that a model is tried on."""


@dataclass(frozen=True)
class Filled:
    """Sequences, and what stands in cells that have none of their tokens."""

    sequences: Sequences
    padding: int


class PackedSamples(Samples):
    """Samples whose inputs and targets are of one length, end to end in rows.

    Args:
        residence: Where they lie.
        inputs: What the model reads.
        targets: What it is to predict, in the same cells.
        capacity: The most tokens in a row.
    """

    def __init__(self, residence: Residence, inputs: Filled, targets: Filled, capacity: int) -> None:
        super().__init__(residence, [], [])
        self._offsets, self._capacity = inputs.sequences.offsets, capacity
        self._inputs, self._targets = ((residence.hold(of.sequences.tokens), of.padding) for of in (inputs, targets))

    def gather(self, rows: Ints) -> Batch:
        """The samples `rows`, where they lie: `input_ids`, `position_ids` and `SEGMENTS`, and the labels."""
        layout = Layout.of(self._offsets, rows, self._capacity)
        places, positions, segments = (
            self.residence.index(layout.filled(values, empty))
            for values, empty in ((layout.places, -1), (layout.positions, 0), (layout.numbers, 0))
        )
        tokens, labels = (_filled(held, padding, places) for held, padding in (self._inputs, self._targets))
        staged = self.residence.staged
        inputs = {"input_ids": tokens, "position_ids": positions, SEGMENTS: segments}
        return Batch(
            inputs={name: staged(tensor) for name, tensor in inputs.items()},
            labels=staged(labels),
            tokens=len(layout.places),
            cells=places.numel(),
        )


def _filled(held: torch.Tensor, padding: int, places: torch.Tensor) -> torch.Tensor:
    """The tokens at `places`, int64, and `padding` where that is -1."""
    tokens = held.index_select(0, places.clamp(min=0).flatten()).view_as(places)
    return tokens.where(places >= 0, padding).long()


def readable(
    inputs: Mapping[str, torch.Tensor], config: transformers.PretrainedConfig, causal: bool
) -> dict[str, torch.Tensor]:
    """Packed inputs as a model takes them: with a mask in place of the segments; others as they are.

    Args:
        inputs: What `Layout.inputs` gave, on the device, or the inputs of padded samples.
        config: The model's, which says how it computes attention.
        causal: Whether a token sees only those before it.
    """
    plain = {name: tensor for name, tensor in inputs.items() if name != SEGMENTS}
    if SEGMENTS not in inputs:
        return plain
    segments = inputs[SEGMENTS]
    seen = (segments[:, :, None] == segments[:, None, :])[:, None]  # padding sees padding: no row of it is empty
    if causal:
        seen = seen.tril()
    if config._attn_implementation == "eager":  # adds the mask to its scores
        return {**plain, "attention_mask": (~seen).float() * torch.finfo(torch.float32).min}
    return {**plain, "attention_mask": seen}


def demand(model: transformers.PreTrainedModel, causal: bool) -> None:
    """Try on a few tokens whether a model computes the same of packed samples.

    Raises:
        TaskError: It does not: it looks across samples, or knows their places by itself.
    """
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            packed, plain = _tried(model, causal)
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise _refusal(model, f"cannot read them: {first}") from error
    finally:
        model.train(training)
    if not float((packed - plain).abs().max()) <= TOLERANCE * float(plain.abs().max()):
        raise _refusal(model, "scores a token otherwise where another sample is in its row")


def _tried(model: transformers.PreTrainedModel, causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """A model's scores of the same tokens in packed samples and in samples by themselves, shape (tokens, classes)."""
    offsets, device = np.cumsum([0, *PROBE]), model.device
    tokens = np.arange(1, sum(PROBE) + 1, dtype=np.int32) % model.get_input_embeddings().num_embeddings
    places = np.arange(sum(PROBE), dtype=np.int32)  # as the targets: they tell which cell a token has come to
    inputs, targets = (Filled(Sequences(values, offsets), 0) for values in (tokens, places))
    batch = PackedSamples(Residence(device, True), inputs, targets, sum(PROBE)).batch(np.arange(len(PROBE)))
    found = model(**readable(batch.inputs, model.config, causal)).logits[0]
    parts = [torch.from_numpy(part)[None].long().to(device) for part in np.split(tokens, offsets[1:-1])]
    plain = torch.cat([model(input_ids=part).logits[0] for part in parts])
    return found, plain[batch.labels[0]]


def _refusal(model: transformers.PreTrainedModel, why: str) -> TaskError:
    what = f"is not for packed samples: a {type(model).__name__} {why}; set it to false, or choose another model"
    return TaskError([Problem("settings.packing", what)])
