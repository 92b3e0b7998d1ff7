"""Models of transformers that predict tokens or their classes, and how they train and evaluate.

The loss of a batch is divided by its targets, not by its samples: a long sample weighs more.
"""

import abc
import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import transformers
from torch import nn

from trials.contract import Setup, TaskError
from trials.data.batching import Ints
from trials.data.ladder import MOST_RUNGS
from trials.data.residence import Residence
from trials.data.samples import LABELS, Padded, Samples
from trials.data.workload import Batch
from trials.descriptions.models import Pretrained, Scratch
from trials.devices import processes
from trials.devices.precision import Precision
from trials.settings import Settings
from trials.tasks.huggingface import lora, templates
from trials.tasks.huggingface.lora import TransformerFiles
from trials.tasks.huggingface.templates import ModelKind
from trials.tasks.huggingface.tokenizer import SCRATCH_POSITIONS
from trials.tasks.sequences import entities
from trials.tasks.sequences.data import IGNORED, SequenceData, Split
from trials.tasks.workloads.heads import perplexity
from trials.tasks.workloads.workload import (
    BuiltInWorkload,
    Measures,
    SampleSet,
    evaluating,
    ladders,
    sum_of,
)


class SequenceWorkload(BuiltInWorkload):
    """A model of tokens with its data on a device (also a `workload.Adaptable`). A task names its
    model (`AUTO`, `scratch`). It overrides `keep`, `count` and `measure` for metrics of its own,
    and `scored` and `samples_of` if its model reads more than tokens and a mask."""

    AUTO: ClassVar[Any]  # the class of transformers that loads and builds the models

    def __init__(
        self, named: Pretrained | Scratch, data: SequenceData, settings: Settings, setup: Setup
    ) -> None:
        device = torch.device(setup.device)
        kind = ModelKind(self.AUTO, data.labels, data.padding)
        dtype = lora.base_dtype(settings, device)
        source = templates.template(named, kind, lambda shape: self.scratch(shape, data), dtype)
        self.check(source.model)
        model = templates.build(source, settings, setup.seed).to(device)
        self._model, self._data = model, data
        self._uncached = templates.uncached(model)
        self._weights = data.train.weights
        masked = templates.always_masked(model, settings, device)
        residence = Residence.of(data, device)
        scored = self.scored(data)
        # Sources and targets, which differ in length, have a ladder each.
        rungs, of_targets = (
            ladders(train.lengths, validation.lengths, settings, device, MOST_RUNGS // 2)
            for train, validation in (
                (data.train.inputs, scored.inputs),
                (data.train.targets, scored.targets),
            )
        )

        def padded(split: Split, rungs: Ints | None, of_targets: Ints | None) -> SampleSet:
            inputs = Padded(
                residence, "input_ids", split.inputs, data.padding, "attention_mask", masked, rungs
            )
            targets = Padded(residence, LABELS, split.targets, IGNORED, rungs=of_targets)
            return self.samples_of(split, [inputs, targets], residence)

        train = padded(data.train, rungs.training, of_targets.training)
        files = TransformerFiles(model, source.base, data.tokenizer_files, device)
        self.merge, self.take = files.merge, files.take
        validation = padded(scored, rungs.evaluation, of_targets.evaluation)
        self.baked = ()
        super().__init__(model, files, train, validation, settings, device)

    def scored(self, data: SequenceData) -> Split:
        """The validation samples as the model reads them."""
        return data.validation

    def samples_of(self, split: Split, parts: list[Padded], residence: Residence) -> SampleSet:
        """The samples of a split, with every target in the cell of its token. `parts` are the
        tokens with their mask, and the targets."""
        lengths = split.inputs.lengths
        return SampleSet(Samples(residence, parts, parts[:1]), lengths)

    @staticmethod
    @abc.abstractmethod
    def scratch(shape: Scratch, data: SequenceData) -> transformers.PretrainedConfig:
        """The configuration of a small model of a shape, for some data."""

    def check(self, model: transformers.PreTrainedModel) -> None:
        """Raise a TaskError if a model cannot be trained on the task."""

    def weight(self, rows: Ints) -> float:
        """The number of targets of the samples `rows`, at least 1."""
        return float(max(self._weights[rows].sum(), 1))

    def losses(self, outputs: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
        """The sum of the cross-entropies of all targets."""
        scores, targets = outputs.flatten(0, 1), labels.flatten()
        return nn.functional.cross_entropy(
            scores, targets, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing
        )

    def outputs(self, batch: Batch) -> torch.Tensor:
        """The scores of all classes for each target, shape (samples, targets, classes)."""
        scores: torch.Tensor = self._model(**batch.inputs, **self._uncached).logits.float()
        return scores

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """The loss of a validation target, without smoothing, and the metrics of `measure`."""
        group = processes.current()
        batches = self._batches
        measured: list[tuple[Ints, Measures]] = []
        with evaluating(self._model):
            for part in group.own(batches.parts(self._order)):
                measured += batches.measured(part, precision, self._evaluate_batch)
        parts, losses, on_device = [], [], []
        for part, (loss_of_part, kept) in measured:
            parts.append(part)
            losses.append(loss_of_part)
            on_device.append(kept)
        total = sum_of(losses, group) + self._missed_loss()
        counted = self.count(parts, [kept.cpu() for kept in on_device])
        counts = group.added(*counted)
        loss = total / max(self._targets(), 1)
        return {"loss": loss, **self.measure(loss, counts)}

    def _targets(self) -> int:
        scored = self._data.scored
        if scored is not None:
            return len(scored.targets.tokens)
        return int(self._data.validation.weights.sum())

    def _missed_loss(self) -> float:
        scored = self._data.scored
        if scored is None or not scored.missed:
            return 0.0
        return scored.missed * math.log(len(self._data.labels))

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        """The metrics beside the loss: if not overridden, the perplexity of a token, and the loss
        by the byte, which compares models with different tokenizers. `loss`: the mean loss of a
        validation target."""
        bits = loss * self._targets() / math.log(2)
        return {
            "perplexity": perplexity(loss),
            "bits_per_byte": bits / max(self._data.scored_bytes, 1),
        }

    def count(self, parts: Sequence[Ints], kept: Sequence[torch.Tensor]) -> Sequence[int]:
        """Counts of validation samples for `measure`, which add up; as many for no samples. `kept`
        are the tensors of `keep`, on the CPU."""
        return ()

    def keep(self, outputs: torch.Tensor) -> torch.Tensor:
        """The part of a batch's scores for `count`, shape (samples, ...)."""
        return outputs[:, :0, 0]


class LanguageWorkload(SequenceWorkload):
    AUTO = transformers.AutoModelForCausalLM

    @staticmethod
    def scratch(shape: Scratch, data: SequenceData) -> transformers.PretrainedConfig:
        return transformers.GPT2Config(
            vocab_size=data.vocabulary,
            n_embd=shape.width,
            n_layer=shape.layers,
            n_head=shape.heads,
            n_inner=shape.feed_forward,
            n_positions=SCRATCH_POSITIONS,
            bos_token_id=data.padding,
            eos_token_id=data.padding,
            pad_token_id=data.padding,
            use_cache=False,
        )


class TokenWorkload(SequenceWorkload):
    AUTO = transformers.AutoModelForTokenClassification

    @staticmethod
    def scratch(shape: Scratch, data: SequenceData) -> transformers.PretrainedConfig:
        kind = ModelKind(TokenWorkload.AUTO, data.labels, data.padding)
        return templates.small_bert(shape, kind, data.vocabulary)

    def keep(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.argmax(dim=-1)

    def count(self, parts: Sequence[Ints], kept: Sequence[torch.Tensor]) -> Sequence[int]:
        data = self._data
        scored = data.scored
        assert scored is not None
        assert scored.cells is not None
        names = dict(enumerate(data.labels))
        names[IGNORED] = entities.OUTSIDE
        truth, found, right, words = [], [], 0, 0
        rows = itertools.chain.from_iterable(parts)
        predicted = itertools.chain.from_iterable(batch.numpy() for batch in kept)
        for row, tags in zip(rows, predicted, strict=True):
            wanted = scored.targets.row(row)
            cells = scored.cells.row(row)
            read = tags[cells.clip(min=0)]
            guessed = np.where(cells == IGNORED, IGNORED, read)
            right += int(np.count_nonzero(guessed == wanted))
            words += len(wanted)
            truth.append([names[number] for number in wanted])
            found.append([names[number] for number in guessed])
        return words, right, *entities.count(truth, found, bilou=entities.is_bilou(data.labels))

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        words, right, *found = counts
        return {"accuracy": right / max(words, 1), **entities.Counts(*found).scores()}


class PairWorkload(SequenceWorkload):
    """An encoder and decoder with pairs of texts. While it is trained, the decoder reads the target
    itself, one place later (teacher forcing)."""

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

    def samples_of(self, split: Split, parts: list[Padded], residence: Residence) -> SampleSet:
        """Source and target, each padded by itself; the decoder reads the shifted target, without a
        mask: its padding follows its tokens, which do not see it."""
        shift = self._model.prepare_decoder_input_ids_from_labels

        def with_decoder_inputs(batch: Batch) -> Batch:
            decoded = shift(labels=batch.labels)
            return dataclasses.replace(batch, inputs={**batch.inputs, "decoder_input_ids": decoded})

        samples = Samples(residence, parts, parts, with_decoder_inputs)
        return SampleSet(samples, np.stack([part.lengths for part in parts], axis=1))

    def check(self, model: transformers.PreTrainedModel) -> None:
        if not hasattr(model, "prepare_decoder_input_ids_from_labels"):
            what = f"a {type(model).__name__} cannot be trained on pairs of texts"
            raise TaskError.at("task.model", f"{what}; choose a model like T5 or BART")
        if getattr(model.config, "decoder_start_token_id", None) is None:
            what = "names no decoder_start_token_id in its config.json"
            hint = "write there which token a target begins with"
            raise TaskError.at("task.model", f"{what}; {hint}")
