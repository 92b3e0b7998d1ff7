"""The model of a sequence to sequence task: a pretrained encoder and decoder, or a small T5 from
scratch.

While it is trained, the decoder reads the target itself, one place later (teacher forcing).
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
import transformers

from trials.contract import TaskError
from trials.data.residence import Residence
from trials.data.samples import Part, Samples
from trials.data.workload import Batch
from trials.descriptions.models import Scratch
from trials.tasks.huggingface.data import SequenceData, Split
from trials.tasks.huggingface.sequences import SequenceWorkload
from trials.tasks.workloads.workload import SampleSet


class PairWorkload(SequenceWorkload):
    """An encoder and decoder with pairs of texts."""

    AUTO = transformers.AutoModelForSeq2SeqLM

    @staticmethod
    def scratch(shape: Scratch, data: SequenceData) -> transformers.PretrainedConfig:
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
            eos_token_id=data.padding + 1,  # as the tokenizer from scratch numbers them
        )

    def scored(self, data: SequenceData) -> Split:
        assert data.scored is not None
        return Split(data.validation.inputs, data.scored.targets)

    def samples_of(self, split: Split, parts: list[Part], residence: Residence) -> SampleSet:
        """Source and target, each padded by itself; the decoder reads the shifted target."""
        shift = self._model.prepare_decoder_input_ids_from_labels

        def with_decoder_inputs(batch: Batch) -> Batch:
            decoded = shift(labels=batch.labels)
            return dataclasses.replace(batch, inputs={**batch.inputs, "decoder_input_ids": decoded})

        counted = [split.inputs.lengths, split.targets.lengths]
        samples = Samples(residence, parts, counted, with_decoder_inputs)
        return SampleSet(samples, np.stack(counted, axis=1))

    def outputs(self, batch: Batch) -> torch.Tensor:
        # The decoder's padding follows its tokens, which do not see it: it needs no mask.
        scores: torch.Tensor = self._model(**batch.inputs, **self._uncached).logits.float()
        return scores

    def check(self, model: transformers.PreTrainedModel) -> None:
        if not hasattr(model, "prepare_decoder_input_ids_from_labels"):
            what = f"a {type(model).__name__} cannot be trained on pairs of texts"
            raise TaskError.at("task.model", f"{what}; choose a model like T5 or BART")
        if getattr(model.config, "decoder_start_token_id", None) is None:
            what = "names no decoder_start_token_id in its config.json"
            hint = "write there which token a target begins with"
            raise TaskError.at("task.model", f"{what}; {hint}")
