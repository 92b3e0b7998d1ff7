"""The model of a sequence to sequence task: a pretrained encoder and decoder, or a small T5 from scratch.

While it is trained, the decoder reads the target itself, one place later (teacher forcing).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import torch
import transformers

from trials.batching import Ints
from trials.contract import Problem, Setup, TaskError
from trials.residence import Residence
from trials.samples import LABELS, Padded, Samples
from trials.settings import Settings
from trials.tasks.language_model import perplexity
from trials.tasks.pretrained import Pretrained
from trials.tasks.sequence_data import IGNORED, SequenceData, Split
from trials.tasks.sequence_model import SequenceWorkload, template
from trials.tasks.text_classification import Scratch
from trials.weights import Weights
from trials.workload import Batch


class PairWorkload(SequenceWorkload):
    """An encoder and decoder with pairs of texts."""

    def __init__(self, model: Pretrained | Scratch, data: SequenceData, settings: Settings, setup: Setup) -> None:
        source = template(model, data, transformers.AutoModelForSeq2SeqLM, _scratch)
        _demand_a_start(source.model)
        super().__init__(source, data, settings, setup)

    def lengths_of(self, split: Split) -> Ints:
        """The tokens of source and target."""
        return split.inputs.lengths + split.targets.lengths

    def samples_of(self, split: Split, residence: Residence) -> Samples:
        """Source and target count; what the decoder reads follows from the target."""
        inputs = Padded(residence, "input_ids", split.inputs, self._data.padding, "attention_mask")
        parts = [inputs, Padded(residence, LABELS, split.targets, IGNORED)]
        return Samples(residence, parts, [split.inputs.lengths, split.targets.lengths], self._decoded)

    def _decoded(self, batch: Batch) -> Batch:
        decoded = self._model.prepare_decoder_input_ids_from_labels(labels=batch.labels)
        return dataclasses.replace(batch, inputs={**batch.inputs, "decoder_input_ids": decoded})

    def logits(self, batch: Batch) -> torch.Tensor:
        """For each token of the targets, the scores of all tokens. The decoder's padding stands behind its tokens,
        which do not see it: it needs no mask."""
        scores: torch.Tensor = self._model(**batch.inputs, use_cache=False).logits.float()
        return scores

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        """The perplexity of a token of the targets."""
        return {"perplexity": perplexity(loss)}

    def write(self, folder: Path, weights: Weights) -> None:
        """Write weights, configuration and tokenizer, and how the model writes texts: what `from_pretrained` reads."""
        super().write(folder, weights)
        if self._model.generation_config is not None:
            self._model.generation_config.save_pretrained(folder)


def _demand_a_start(model: transformers.PreTrainedModel) -> None:
    """Refuse a model of which it is not known how a target begins.

    Raises:
        TaskError: With what is missing.
    """
    if not hasattr(model, "prepare_decoder_input_ids_from_labels"):
        what = f"a {type(model).__name__} cannot be trained on pairs of texts; choose a model like T5 or BART"
        raise TaskError([Problem("task.model", what)])
    if getattr(model.config, "decoder_start_token_id", None) is None:
        what = "names no decoder_start_token_id in its config.json; write there which token a target begins with"
        raise TaskError([Problem("task.model", what)])


def _scratch(shape: Scratch, data: SequenceData) -> transformers.PretrainedConfig:
    return transformers.T5Config(
        vocab_size=data.vocabulary,
        d_model=shape.width,
        d_kv=shape.width // shape.heads,
        d_ff=shape.feed_forward,
        num_layers=shape.layers,
        num_decoder_layers=shape.layers,
        num_heads=shape.heads,
        pad_token_id=data.padding,
        decoder_start_token_id=data.padding,
        eos_token_id=data.padding + 1,  # the order in which the tokenizer from scratch numbers them
    )
