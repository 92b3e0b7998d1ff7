"""Packed samples: several short ones end to end in one row, each computed as if it were alone.

Positions start again with every sample, and a mask lets a token see only the tokens of its own
sample (Krell et al. 2021, arXiv 2107.02027). Layers that see only a part of a sample, such as a
sliding window, get a mask of their own kind. `demand` makes sure that a model uses positions and
masks.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import transformers
from torch import nn

from trials.contract import TaskError
from trials.data.batching import Ints, Sequences
from trials.data.residence import Residence
from trials.data.row_layout import Layout
from trials.data.samples import Samples
from trials.data.workload import Batch
from trials.devices.memory import is_out_of_memory
from trials.foreign import line_of

SEGMENTS = "segments"
"""The input with the number of each cell's sample in its row: from 1 on, and 0 for padding."""
TOLERANCE = 1e-3
"""The largest difference between packed and plain features that may come from rounding, as a share
of the largest feature."""
ROUNDINGS = 8
"""The same as a number of rounding errors of the weights, for weights in half precision."""
FULL, SLIDING = "full_attention", "sliding_attention"
"""The attention of a layer, as transformers names it: to all of a sample, or to a window."""


@dataclass(frozen=True)
class Filled:
    """Sequences, and the value of cells without a token."""

    sequences: Sequences
    padding: int


class PackedSamples(Samples):
    """Samples whose inputs and targets are of one length, end to end in rows. `capacity`: the most
    tokens in a row. `first`: the position of the first token of a sample."""

    def __init__(
        self,
        residence: Residence,
        inputs: Filled,
        targets: Filled,
        capacity: int,
        first: int = 0,
    ) -> None:
        super().__init__(residence, [])
        self._offsets = inputs.sequences.offsets
        self._capacity = capacity
        self._first = first
        self._input_tokens = residence.hold(inputs.sequences.tokens)
        self._input_padding = inputs.padding
        self._target_tokens = residence.hold(targets.sequences.tokens)
        self._target_padding = targets.padding

    def gather(self, rows: Ints) -> Batch:
        """The samples `rows` in their place. Returns the inputs `input_ids`, `position_ids` and
        `SEGMENTS`, and the labels, each of the layout's shape."""
        residence = self.residence
        layout = Layout.of(self._offsets, rows, self._capacity)
        filled = layout.filled
        places = residence.index(filled(layout.places, -1))
        positions = layout.positions + self._first
        inputs = {
            "input_ids": _tokens_at(places, self._input_tokens, self._input_padding),
            "position_ids": residence.index(filled(positions, 0)),
            SEGMENTS: residence.index(filled(layout.numbers, 0)),
        }
        labels = _tokens_at(places, self._target_tokens, self._target_padding)
        return Batch(
            inputs={name: residence.staged(tensor) for name, tensor in inputs.items()},
            labels=residence.staged(labels),
            tokens=len(layout.places),
            cells=places.numel(),
        )


def _tokens_at(places: torch.Tensor, tokens: torch.Tensor, padding: int) -> torch.Tensor:
    """The tokens at `places`, int64, and `padding` at places of -1."""
    flat = places.clamp(min=0).flatten()
    found = tokens.index_select(0, flat).view_as(places)
    padded = found.where(places >= 0, padding)
    return padded.long()


def readable(
    inputs: Mapping[str, torch.Tensor], config: transformers.PretrainedConfig, causal: bool
) -> dict[str, torch.Tensor | dict[str, torch.Tensor]]:
    """Packed inputs for a model, with masks in place of the segments; others are unchanged."""
    plain: dict[str, torch.Tensor | dict[str, torch.Tensor]] = dict(inputs)
    if plain.pop(SEGMENTS, None) is None:
        return plain
    kinds = _kinds(config)
    masks = {kind: _mask(kind, inputs, config, causal) for kind in kinds}
    plain["attention_mask"] = masks if len(masks) > 1 else masks[kinds[0]]
    return plain


def _kinds(config: transformers.PretrainedConfig) -> list[str]:
    """The kinds of attention of a model's layers, as transformers itself decides it."""
    text = config.get_text_config()
    kinds = getattr(text, "layer_types", None)
    if kinds:
        return sorted(set(kinds))
    if getattr(text, "sliding_window", None) is not None:
        return [SLIDING]
    if getattr(text, "attention_chunk_size", None) is not None:
        return ["chunked_attention"]
    return [FULL]


def _mask(
    kind: str,
    inputs: Mapping[str, torch.Tensor],
    config: transformers.PretrainedConfig,
    causal: bool,
) -> torch.Tensor:
    """The attention mask of layers of a kind, shape (rows, 1, cells, cells). Every cell sees at
    least one: padding sees padding."""
    text = config.get_text_config()
    segments = inputs[SEGMENTS]
    seen = segments[:, :, None] == segments[:, None, :]
    places = torch.arange(segments.shape[1], device=segments.device)
    behind = places[:, None] - places[None, :]  # in a sample, as many tokens as in its row
    if causal:
        seen = seen & (behind >= 0)
    # transformers counts the token itself as part of the window only where attention is causal.
    if kind == SLIDING and causal:
        seen = seen & (behind < text.sliding_window)
    elif kind == SLIDING:
        seen = seen & (behind.abs() <= text.sliding_window)
    seen = seen[:, None]
    if config._attn_implementation == "eager":  # adds the mask to its scores
        return (~seen).float() * torch.finfo(torch.float32).min
    return seen


def first_position(model: nn.Module) -> int:
    """The position of a sample's first token: 0, or after the padding's in models like RoBERTa."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith("position_embeddings"):
            return 0 if module.padding_idx is None else module.padding_idx + 1
    return 0


def demand(model: transformers.PreTrainedModel, causal: bool, capacity: int) -> None:
    """Make sure that a model computes the same from packed samples.

    It is tried on rows of full length, because a layer's window may be long.

    Raises:
        TaskError: It does not: it looks across samples, or has positions of its own.
    """
    unknown = set(_kinds(model.config)) - {FULL, SLIDING}
    if unknown:
        layers = ", ".join(sorted(unknown))
        raise _refusal(model, f"has layers of {layers}, which do not take samples into account")
    training = model.training
    model.eval()
    # One sample that fills a row, and two that share one.
    half = capacity // 2
    try:
        with torch.inference_mode():
            is_same = _computes_the_same(model, causal, (capacity,))
            is_same = is_same and _computes_the_same(model, causal, (capacity - half, half))
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise _refusal(model, f"cannot read packed samples: {line_of(error)}") from error
    finally:
        model.train(training)
    if not is_same:
        raise _refusal(model, "computes a token differently if another sample is in its row")


def _computes_the_same(
    model: transformers.PreTrainedModel, causal: bool, lengths: tuple[int, ...]
) -> bool:
    """True if the features of all tokens are equal in one packed row and in plain samples. Features
    are the input of the model's head, and take much less memory than the scores of a vocabulary.
    They may differ by rounding."""
    offsets = np.cumsum([0, *lengths])
    tokens = _probe(model, sum(lengths))
    batch = _in_one_row(model, Sequences(tokens, offsets))
    inputs = readable(batch.inputs, model.config, causal)
    packed = model.base_model(**inputs)[0][0]
    alone = []
    for part in np.split(tokens, offsets[1:-1]):
        row = torch.from_numpy(part)[None].long().to(model.device)
        features = model.base_model(input_ids=row)[0][0]
        alone.append(features)
    plain = torch.cat(alone)
    rounding = torch.finfo(model.dtype).eps
    tolerance = max(TOLERANCE, ROUNDINGS * rounding)
    places = batch.labels[0]
    difference = (packed - plain[places]).abs().max()
    greatest = plain.abs().max()
    return bool(difference <= tolerance * greatest)


def _in_one_row(model: transformers.PreTrainedModel, sequences: Sequences) -> Batch:
    count, total = len(sequences.lengths), len(sequences.tokens)
    places = np.arange(total, dtype=np.int32)
    inputs = Filled(sequences, 0)
    targets = Filled(Sequences(places, sequences.offsets), 0)
    residence = Residence(model.device, resident=True)
    samples = PackedSamples(residence, inputs, targets, total, first_position(model))
    return samples.batch(np.arange(count))


def _probe(model: transformers.PreTrainedModel, count: int) -> npt.NDArray[np.int32]:
    """Tokens without the padding token, which some models skip in their positions."""
    embeddings = model.get_input_embeddings()
    known = np.arange(embeddings.num_embeddings, dtype=np.int32)
    text = model.config.get_text_config()
    padding = getattr(text, "pad_token_id", None)
    wanted = known[known != padding]
    return np.resize(wanted, count)


def _refusal(model: transformers.PreTrainedModel, why: str) -> TaskError:
    what = f"does not suit this model: a {type(model).__name__} {why}"
    remedy = "set it to false, or choose another model"
    return TaskError.at("settings.packing", f"{what}; {remedy}")
