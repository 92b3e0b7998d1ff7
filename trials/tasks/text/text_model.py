"""The model of a task on whole texts, or pairs of texts, with its data; and one in use."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers

from trials.contract import Setup
from trials.data.batching import Ints, Sequences
from trials.data.residence import Residence
from trials.data.samples import LABELS as TARGETS
from trials.data.samples import Column, Padded, Part, Samples
from trials.data.workload import Batch
from trials.descriptions.models import Pretrained, Scratch
from trials.descriptions.text import CLASS, LABELS, NUMBER
from trials.settings import Settings
from trials.tasks.huggingface import lora, pretrained, templates
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.huggingface.lora import TransformerFiles
from trials.tasks.huggingface.tokenizer import TOKEN_TYPES
from trials.tasks.text.text_task import DESCRIPTION, Text, TextData, tokenise
from trials.tasks.workloads.heads import ClassHead, Head, LabelsHead, NumberHead, of_numbers
from trials.tasks.workloads.in_use import ModelInUse, described, in_batches
from trials.tasks.workloads.workload import OneTargetWorkload, SampleSet, ladders

Texts = Sequence[str] | Sequence[Sequence[str]]


class TextModel(ModelInUse):
    """A trained model of texts, or of pairs of texts: each text is a string, each pair a tuple.
    `folder`: the model of a final training; code in it is not run. Raises FileNotFoundError if it
    holds no such model, ValueError if it lacks weights, or holds adapters alone."""

    def __init__(self, folder: Path | str, device: str = "cpu") -> None:
        about = described(folder, DESCRIPTION)
        model = pretrained.written(transformers.AutoModelForSequenceClassification, folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        self._model, self._tokenizer = model.to(device), tokenizer
        self._device = torch.device(device)
        self._in_pairs, self._max_length = about["pairs"], about["max_length"]
        self._target, self._mean = about["target"], float(about["mean"])
        self._deviation = float(about["deviation"])
        self.labels = tuple(name for _, name in sorted(model.config.id2label.items()))

    def _outputs(self, inputs: Texts, batch_size: int) -> torch.Tensor:
        texts = self._checked(inputs)
        if not texts:
            return torch.empty(0, len(self.labels))
        tokens, types, _ = tokenise(self._tokenizer, texts, self._max_length)
        memory = Residence(torch.device("cpu"), resident=True)
        padding = text_tokenizer.padding_of(self._tokenizer)
        parts = [Padded(memory, "input_ids", tokens, padding, "attention_mask")]
        if types is not None and templates.reads_types(self._model, types):
            parts.append(Padded(memory, text_tokenizer.TOKEN_TYPES, types, padding=0))

        def scores(rows: Ints) -> torch.Tensor:
            batch: dict[str, torch.Tensor] = {}
            for part in parts:
                batch |= part.gather(rows, memory.index(rows))
            sent = {name: tensor.to(self._device) for name, tensor in batch.items()}
            found: torch.Tensor = self._model(**sent, **templates.uncached(self._model)).logits
            return found

        longest_first = np.argsort(-tokens.lengths, kind="stable")
        return in_batches(longest_first, batch_size, len(self.labels), scores)

    def _checked(self, inputs: Texts) -> list[Text]:
        wanted = "pairs of texts" if self._in_pairs else "a list of texts"
        if isinstance(inputs, str):
            raise ValueError(f"the model reads {wanted}, not one text; put it into a list")
        texts: list[Text] = []
        for each in inputs:
            parts = (each,) if isinstance(each, str) else tuple(each) if self._in_pairs else ()
            fits = len(parts) == (2 if self._in_pairs else 1)
            if not fits or not all(isinstance(part, str) for part in parts):
                raise ValueError(f"the model reads {wanted}, not {each!r}")
            texts.append(parts)
        return texts


PROBLEMS = {CLASS: None, LABELS: "multi_label_classification", NUMBER: "regression"}
"""Transformers' names for the targets (`problem_type`); classes need none."""


class TextWorkload(OneTargetWorkload):
    """A model of whole texts, with its texts (also a `workload.Adaptable`)."""

    def __init__(
        self, model: Pretrained | Scratch, data: TextData, settings: Settings, setup: Setup
    ) -> None:
        device = torch.device(setup.device)
        auto, problem = transformers.AutoModelForSequenceClassification, PROBLEMS[data.target]
        kind = templates.ModelKind(auto, data.labels, data.padding, problem)
        dtype = lora.base_dtype(settings, device)
        source = templates.template(
            model, kind, lambda shape: templates.small_bert(shape, kind, data.vocabulary), dtype
        )
        self._model = templates.build(source, settings, setup.seed).to(device)
        self._uncached = templates.uncached(self._model)
        self._head, self._targets = _head_of(data, device), data.validation_labels
        beside = {**data.tokenizer_files, DESCRIPTION: _description(data, settings)}
        files = TransformerFiles(self._model, source.base, beside, device)
        residence = Residence.of(data, device)
        masked = templates.always_masked(self._model, settings, device)

        def split(
            texts: Sequences, types: Sequences | None, labels: npt.NDArray[Any], rungs: Ints | None
        ) -> SampleSet:
            tokens = Padded(
                residence, "input_ids", texts, data.padding, "attention_mask", masked, rungs
            )
            parts: list[Part] = [tokens, Column(residence, TARGETS, labels)]
            if types is not None and templates.reads_types(self._model, types):
                parts.append(Padded(residence, TOKEN_TYPES, types, padding=0, rungs=rungs))
            return SampleSet(Samples(residence, parts, [tokens]), texts.lengths)

        rungs = ladders(data.train.lengths, data.validation.lengths, settings, device)
        train = split(data.train, data.train_types, data.train_labels, rungs.training)
        validation = split(
            data.validation, data.validation_types, data.validation_labels, rungs.evaluation
        )
        weights = None if data.class_weights is None else data.class_weights.tobytes()
        self.baked = (data.target, weights)
        self.merge, self.take = files.merge, files.take
        super().__init__(self._model, files, train, validation, settings, device)

    def outputs(self, batch: Batch) -> torch.Tensor:
        """The scores of the classes or labels, or a number, shape (texts, labels)."""
        scores: torch.Tensor = self._model(**batch.inputs, **self._uncached).logits.float()
        return scores


def _description(data: TextData, settings: Settings) -> bytes:
    names = ("target", "pairs", "mean", "deviation")
    content = {name: getattr(data, name) for name in names}
    content["max_length"] = settings.max_length
    return json.dumps(content, indent=1).encode()


def _head_of(data: TextData, device: torch.device) -> Head:
    weights = None
    if data.class_weights is not None:
        weights = torch.tensor(data.class_weights, device=device)
    if data.target == CLASS:
        return ClassHead(weights)
    if data.target == LABELS:
        return LabelsHead(weights)
    return NumberHead(data.deviation, of_numbers)
