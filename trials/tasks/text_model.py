"""The model of a text classification task, and how it trains and evaluates.

Templates (a model on the CPU with its pretrained weights) are kept for the life of the process: a run copies one, so
that the second run of a warm worker neither reads files nor builds modules.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn

from trials import distributed, lora, metrics
from trials.batching import Ints, Sequences
from trials.contract import Problem, Setup, TaskError
from trials.precision import Precision
from trials.randomness import Use, derive, seed_everything
from trials.residence import Residence
from trials.samples import LABELS, Column, Padded, Part, Samples
from trials.settings import Settings
from trials.tasks import evaluation
from trials.tasks.pretrained import Pretrained, loading, write_description
from trials.tasks.text_classification import Scratch
from trials.tasks.text_data import TextData
from trials.tasks.text_tokenizer import SCRATCH_POSITIONS
from trials.weights import Weights, write
from trials.workload import Batch


@dataclass(frozen=True)
class Template:
    """A model to copy.

    Args:
        model: On the CPU, never trained.
        fresh: The names of the modules without pretrained weights, which each trial initialises from its seed.
    """

    model: transformers.PreTrainedModel
    fresh: frozenset[str]


@functools.lru_cache(maxsize=2)
def template(model: Pretrained | Scratch, labels: tuple[str, ...], vocabulary: int, padding: int) -> Template:
    """The template of a model: read or built once in a process.

    Args:
        model: A pretrained model, or a shape to build from scratch.
        labels: The names of the classes.
        vocabulary: Tokens that a model from scratch embeds.
        padding: The padding token, for models that have not named one.

    Raises:
        TaskError: The model cannot be loaded as a classifier.
    """
    names = {"id2label": dict(enumerate(labels)), "label2id": {label: number for number, label in enumerate(labels)}}
    if isinstance(model, Scratch):
        config = transformers.BertConfig(
            vocab_size=vocabulary,
            hidden_size=model.width,
            num_hidden_layers=model.layers,
            num_attention_heads=model.heads,
            intermediate_size=model.feed_forward,
            max_position_embeddings=SCRATCH_POSITIONS,
            pad_token_id=padding,
            architectures=["BertForSequenceClassification"],
            **names,
        )
        built = transformers.BertForSequenceClassification(config)
        return Template(built, frozenset(name for name, _ in built.named_modules()))
    return pretrained(transformers.AutoModelForSequenceClassification, model, names, padding)


def pretrained(auto: Any, model: Pretrained, names: Mapping[str, Any], padding: int | None) -> Template:
    """A model with pretrained weights, and which of its parts have none.

    Args:
        auto: One of transformers' Auto classes.
        model: The model.
        names: The labels, as the model's configuration takes them.
        padding: The token that fills a batch, for a model that names none; None for models without tokens.

    Raises:
        TaskError: It cannot be loaded.
    """
    transformers.utils.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()  # it warns of a new classifier, which is what is asked for
    with loading(model):
        loaded, info = auto.from_pretrained(
            model.name, trust_remote_code=model.trusted, output_loading_info=True, ignore_mismatched_sizes=True,
            dtype=torch.float32, **names,
        )  # fmt: skip
    if padding is not None and getattr(loaded.config, "pad_token_id", None) is None:
        loaded.config.pad_token_id = padding
    loaded.config.architectures = [type(loaded).__name__]
    new = [*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])]
    return Template(loaded, frozenset(key.rpartition(".")[0] for key in new))


def build(template: Template, settings: Settings, seed: int) -> transformers.PreTrainedModel:
    """A model to train: a copy of the template, its new parts initialised from the trial's seed."""
    model = copy.deepcopy(template.model)
    seed_everything(derive(seed, Use.WEIGHTS))
    for name, module in model.named_modules():
        if name in template.fresh:
            model._init_weights(module)
    if settings.dropout is not None:
        _set_dropout(model, settings.dropout)
    if settings.lora:
        lora.add(model, settings, template.fresh)
    if settings.freeze_layers:
        _freeze(model, settings.freeze_layers)
    if settings.gradient_checkpointing:
        _checkpoint_activations(model)
    return model


def _checkpoint_activations(model: transformers.PreTrainedModel) -> None:
    if not model.supports_gradient_checkpointing:
        what = f"a {type(model).__name__} cannot do it; set it to false, or choose another model"
        raise TaskError([Problem("settings.gradient_checkpointing", what)])
    # Later releases of transformers 5 have renamed it, and warn of the older name.
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})  # the reentrant kind gives no gradients to a layer above frozen ones


def _set_dropout(model: transformers.PreTrainedModel, dropout: float) -> None:
    """Set every dropout probability: of modules, of attention (a number on its module), and in the configuration."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
        for name in [n for n, value in vars(module).items() if "dropout" in n and isinstance(value, float)]:
            setattr(module, name, dropout)
    for name, value in model.config.to_dict().items():
        if name.endswith(("dropout", "dropout_prob", "dropout_rate")) and isinstance(value, float):
            setattr(model.config, name, dropout)


def _freeze(model: transformers.PreTrainedModel, count: int) -> None:
    """Take the embeddings and the `count` lowest layers out of training."""
    base = model.base_model
    depth = getattr(model.config, "num_hidden_layers", None)  # a configuration that came with its code may not say
    stacks = [m for m in base.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    if not stacks or count > len(stacks[0]):
        layers = len(stacks[0]) if stacks else 0
        what = f"must be at most {layers}, the layers of this model, not {count}"
        raise TaskError([Problem("settings.freeze_layers", what)])
    embeddings = [m for name, m in base.named_modules() if name == "embeddings" or isinstance(m, nn.Embedding)]
    for module in [*embeddings, *stacks[0][:count]]:
        module.requires_grad_(False)


def _samples(residence: Residence, texts: Sequences, labels: Ints, padding: int) -> Samples:
    parts: list[Part] = [
        Padded(residence, "input_ids", texts, padding, "attention_mask"),
        Column(residence, LABELS, labels),
    ]
    return Samples(residence, parts, [texts.lengths])


class TextWorkload:
    """A text classifier with its data on a device (a `workload.Workload`)."""

    def __init__(self, model: Pretrained | Scratch, data: TextData, settings: Settings, setup: Setup) -> None:
        self._device = torch.device(setup.device)
        source = template(model, data.labels, data.vocabulary, data.padding)
        self._model = build(source, settings, setup.seed).to(self._device)
        self.model: nn.Module = self._model
        self.lengths: Ints = data.train.lengths
        self._data = data
        residence = Residence.of(data, self._device)
        self.samples = _samples(residence, data.train, data.train_labels, data.padding)
        self._validation = _samples(residence, data.validation, data.validation_labels, data.padding)
        self._smoothing = settings.label_smoothing
        self._eval_batch_size = settings.eval_batch_size
        # Longest first: texts of a batch pad little, and too large a batch fails at once.
        self._eval_order = np.argsort(-data.validation.lengths, kind="stable")

    def batch(self, rows: Ints) -> Batch:
        """The training texts `rows`."""
        return self.samples.batch(rows)

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """The sum of the texts' cross-entropies."""
        logits = self._model(**batch.inputs).logits.float()
        return nn.functional.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=self._smoothing)

    def weight(self, rows: Ints) -> float:
        """One class a text."""
        return float(len(rows))

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """Loss (without smoothing), accuracy, macro F1 and Matthews correlation of the validation texts."""
        order = self._eval_order
        parts = evaluation.cut(order, self._eval_batch_size)
        with evaluation.evaluating(self._model):
            results = distributed.current().spread(parts, lambda part: self._evaluate_batch(part, precision))
        predicted = torch.cat([prediction for _, prediction in results]).cpu().numpy()
        truth = self._data.validation_labels[order]
        found = metrics.classification(truth, predicted, len(self._data.labels))
        return {"loss": evaluation.total([loss for loss, _ in results]) / len(order), **found}

    def evaluate_longest(self, precision: Precision) -> None:
        """Evaluate the batch of the longest validation texts."""
        with evaluation.evaluating(self._model):
            loss, _ = self._evaluate_batch(self._eval_order[: self._eval_batch_size], precision)
        loss.item()  # waits for the device

    def _evaluate_batch(self, rows: Ints, precision: Precision) -> tuple[torch.Tensor, torch.Tensor]:
        """The sum of losses, and the predicted classes, of the validation texts `rows`; both on the device."""
        batch = self._validation.batch(rows)
        with precision.autocast():
            logits = self._model(**batch.inputs).logits.float()
        return nn.functional.cross_entropy(logits, batch.labels, reduction="sum"), logits.argmax(dim=-1)

    def weights(self) -> Weights:
        """The model's weights, and its adapters."""
        return lora.weights(self._model)

    def write(self, folder: Path, weights: Weights) -> None:
        """Write weights, configuration and tokenizer: what `from_pretrained` reads."""
        write(weights, folder)
        write_description(self._model, folder)
        for name, content in self._data.tokenizer_files.items():
            (folder / name).write_bytes(content)

    def read(self, folder: Path) -> None:
        """Load the weights of a checkpoint."""
        lora.read(self._model, folder, self._device)
