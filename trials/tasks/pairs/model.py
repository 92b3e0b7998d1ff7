"""The model of a sequence to sequence task: a pretrained encoder and decoder, or a small T5 from
scratch.

While it is trained, the decoder reads the target itself, one place later (teacher forcing).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import transformers

from trials.checkpoints.weights import Weights
from trials.contract import Problem, Setup, TaskError
from trials.data.batching import Ints
from trials.data.residence import Residence
from trials.data.samples import LABELS, Padded, Samples
from trials.data.workload import Batch
from trials.descriptions.models import Pretrained, Scratch
from trials.settings import Settings
from trials.tasks.huggingface import lora
from trials.tasks.huggingface.data import IGNORED, SequenceData, Split
from trials.tasks.huggingface.sequences import SequenceWorkload, TokenLayout, template
from trials.tasks.metrics import perplexity


class PairLayout(TokenLayout):
    """Source and target, padded each by itself; what the decoder reads follows from the target."""

    def lengths(self, split: Split) -> Ints:
        """The tokens of source and target, shape (n, 2)."""
        return np.stack([split.inputs.lengths, split.targets.lengths], axis=1)

    def scored(self, data: SequenceData) -> Split:
        """The validation pairs, with targets as long as they are scored."""
        assert data.scored is not None
        return Split(data.validation.inputs, data.scored.targets)

    def samples(
        self,
        split: Split,
        inputs: Padded,
        residence: Residence,
        model: transformers.PreTrainedModel,
    ) -> Samples:
        """Source and target count."""

        def with_decoder_inputs(batch: Batch) -> Batch:
            decoded = model.prepare_decoder_input_ids_from_labels(labels=batch.labels)
            return dataclasses.replace(batch, inputs={**batch.inputs, "decoder_input_ids": decoded})

        targets = Padded(residence, LABELS, split.targets, IGNORED)
        counted = [split.inputs.lengths, split.targets.lengths]
        return Samples(residence, [inputs, targets], counted, with_decoder_inputs)


class PairWorkload(SequenceWorkload):
    """An encoder and decoder with pairs of texts."""

    def __init__(
        self, model: Pretrained | Scratch, data: SequenceData, settings: Settings, setup: Setup
    ) -> None:
        dtype = lora.base_dtype(settings, torch.device(setup.device))
        source = template(model, data, transformers.AutoModelForSeq2SeqLM, _scratch, dtype)
        _demand_a_start(source.model)
        super().__init__(source, data, settings, setup, PairLayout())

    def logits(self, batch: Batch) -> torch.Tensor:
        """For each token of the targets, the scores of all tokens. The decoder's padding stands
        behind its tokens, which do not see it: it needs no mask."""
        scores: torch.Tensor = self._model(**batch.inputs, **self._uncached).logits.float()
        return scores

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        """The perplexity of a token of the targets."""
        return {"perplexity": perplexity(loss)}

    def write(self, folder: Path, weights: Weights) -> None:
        """Write weights, configuration and tokenizer, and how the model writes texts: what
        `from_pretrained` reads."""
        super().write(folder, weights)
        if self._model.generation_config is not None:
            self._model.generation_config.save_pretrained(folder)


def _demand_a_start(model: transformers.PreTrainedModel) -> None:
    """Refuse a model of which it is not known how a target begins.

    Raises:
        TaskError: With what is missing.
    """
    if not hasattr(model, "prepare_decoder_input_ids_from_labels"):
        what = f"a {type(model).__name__} cannot be trained on pairs of texts"
        raise TaskError([Problem("task.model", f"{what}; choose a model like T5 or BART")])
    if getattr(model.config, "decoder_start_token_id", None) is None:
        what = "names no decoder_start_token_id in its config.json"
        hint = "write there which token a target begins with"
        raise TaskError([Problem("task.model", f"{what}; {hint}")])


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
