"""Templates of models of transformers, and the model of a trial as a copy of one.

Templates (a model on the CPU with its pretrained weights) are kept for the life of the process: the
second run of a warm worker neither reads files nor builds modules.
"""

import copy
import functools
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import nn

from trials.contract import TaskError
from trials.data.batching import Sequences
from trials.descriptions.models import Pretrained, Scratch
from trials.loop.captured import is_captured
from trials.running.randomness import Use, derive, seed_everything
from trials.settings import Settings
from trials.tasks.huggingface import lora
from trials.tasks.huggingface.pretrained import loading, new_weights
from trials.tasks.huggingface.tokenizer import SCRATCH_POSITIONS, TOKEN_TYPES


@dataclass(frozen=True)
class ModelKind:
    """A kind of model."""

    auto: Any  # the class of transformers that loads and builds models of this kind
    labels: tuple[str, ...]  # the names of its classes; empty if it has none of its own
    padding: int | None  # the token that fills a batch; None for models without tokens
    problem: str | None = None
    """Transformers' `problem_type` of a classifier, which its pipelines follow; None for classes
    that exclude each other."""

    @property
    def names(self) -> dict[str, Any]:
        """The labels and the problem, as arguments of a model's configuration."""
        if not self.labels:
            return {}
        numbers = {label: number for number, label in enumerate(self.labels)}
        named: dict[str, Any] = {
            "num_labels": len(self.labels),  # the models of timm know no other
            "id2label": dict(enumerate(self.labels)),
            "label2id": numbers,
        }
        if self.problem is not None:
            named["problem_type"] = self.problem
        return named


@dataclass(frozen=True)
class Template:
    """A model to copy. `fresh`: the modules without pretrained weights, which each trial
    initialises from its seed."""

    model: transformers.PreTrainedModel
    fresh: frozenset[str]
    base: lora.Base = lora.SCRATCH


def template(
    model: Pretrained | Scratch,
    kind: ModelKind,
    scratch: Callable[[Scratch], transformers.PretrainedConfig],
    dtype: torch.dtype = torch.float32,
) -> Template:
    """The model to copy, loaded or built once in a process. Raises TaskError if the model cannot be
    loaded. `dtype`: the type of pretrained weights; others are float32."""
    if isinstance(model, Scratch):
        return built(kind.auto, scratch(model).to_json_string())
    return pretrained(model, kind, dtype)


@functools.lru_cache(maxsize=2)
def built(auto: Any, config: str) -> Template:
    parsed = json.loads(config)
    configured = transformers.AutoConfig.for_model(parsed.pop("model_type"), **parsed)
    model = auto.from_config(configured)
    model.config.architectures = [type(model).__name__]
    modules = dict(model.named_modules())
    return Template(model, frozenset(modules))


@functools.lru_cache(maxsize=2)
def pretrained(model: Pretrained, kind: ModelKind, dtype: torch.dtype = torch.float32) -> Template:
    """The template of a model with pretrained weights. `dtype`: the type of its weights. Files of
    this type are mapped into memory, not copied. Raises TaskError if it cannot be loaded, or
    weights of its body are missing."""
    transformers.utils.logging.disable_progress_bar()
    # Its own warning of a new classifier is a table.
    transformers.logging.set_verbosity_error()
    with loading(model):
        config = transformers.AutoConfig.from_pretrained(
            model.name, trust_remote_code=model.trusted
        )
        loaded, info = kind.auto.from_pretrained(
            model.name,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            dtype=dtype,
            trust_remote_code=model.trusted,
            **kind.names,
        )
    if hasattr(loaded.config, "label_names"):  # of timm's models, which write no others
        loaded.config.label_names = list(kind.labels)
    fresh = _modules_of(new_weights(model, loaded, info), loaded)
    revision = getattr(loaded.config, "_commit_hash", None)
    stored = config.dtype if isinstance(config.dtype, torch.dtype) else torch.float32
    base = lora.Base(model.name, revision, stored)
    if kind.padding is not None:
        _fill_with(kind.padding, loaded)
    loaded.config.architectures = [type(loaded).__name__]
    return Template(loaded, fresh, base)


def _modules_of(new: list[str], model: nn.Module) -> frozenset[str]:
    """The modules of new weights, and those around them that have no others."""
    others = model.state_dict().keys() - set(new)
    found = set()
    for name in new:
        inner, _, _ = name.rpartition(".")
        found.add(inner)
        outer, _, _ = inner.rpartition(".")
        while outer and not any(other.startswith(f"{outer}.") for other in others):
            found.add(outer)
            outer, _, _ = outer.rpartition(".")
    return frozenset(found)


def small_bert(shape: Scratch, kind: ModelKind, vocabulary: int) -> transformers.BertConfig:
    return transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.feed_forward,
        max_position_embeddings=SCRATCH_POSITIONS,
        pad_token_id=kind.padding,
        **kind.names,
    )


def _fill_with(padding: int, model: transformers.PreTrainedModel) -> None:
    """Set the token that fills the batches of a model.

    Decoders classify a text by its last token that is not padding. With another padding token in
    its configuration, a text's class would depend on the texts beside it. Models that number
    positions by the padding keep theirs: loaded again, they would count from another number."""
    for config in (model.config, model.config.get_text_config()):
        named = getattr(config, "pad_token_id", None)
        if named is None or not _numbers_by_padding(model):
            config.pad_token_id = padding


def _numbers_by_padding(model: nn.Module) -> bool:
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith("position_embeddings"):
            return module.padding_idx is not None
    return False


def uncached(model: nn.Module) -> dict[str, bool]:
    """The argument for a forward pass without a cache, which only generation needs."""
    understood = inspect.signature(model.forward).parameters
    return {"use_cache": False} if "use_cache" in understood else {}


def reads_types(model: transformers.PreTrainedModel, types: Sequences) -> bool:
    """True if a model reads the types of tokens in pairs."""
    if TOKEN_TYPES not in inspect.signature(model.forward).parameters:
        return False
    embedded = getattr(model.config, "type_vocab_size", None)
    return embedded is None or int(types.tokens.max(initial=0)) < embedded


def always_masked(model: nn.Module, settings: Settings, device: torch.device) -> bool:
    """True if a model gets a mask for batches without padding too. For transformers' own models no
    mask means the same, without a wait for the device. A model's own code may treat it differently,
    and a model would be captured with and without."""
    own = type(model).__module__.startswith("transformers.")
    return not own or is_captured(settings, device)


def build(template: Template, settings: Settings, seed: int) -> transformers.PreTrainedModel:
    """A copy of the template to train, its new parts initialised from the trial's seed."""
    if settings.lora:
        model = lora.copied(template.model, template.fresh)
    else:
        model = copy.deepcopy(template.model)
    seed_everything(derive(seed, Use.WEIGHTS))
    _initialise(model, template.fresh, model)
    if settings.dropout is not None:
        _set_dropout(model, settings.dropout)
    if settings.lora:
        lora.add(model, settings, template.fresh, template.base)
    if settings.freeze_layers:
        _freeze(model, settings.freeze_layers)
    if settings.gradient_checkpointing:
        _checkpoint_activations(model)
    _trust_batches(model)
    return model


def _initialise(
    module: nn.Module, fresh: frozenset[str], owner: transformers.PreTrainedModel, name: str = ""
) -> None:
    """Initialise modules as transformers does: the inner ones first, as some modules set weights
    inside them in their own way, and models within a model by their own rules. `owner` is the
    innermost model of transformers around the module."""
    for child_name, child in module.named_children():
        path = f"{name}.{child_name}" if name else child_name
        of_child = child if isinstance(child, transformers.PreTrainedModel) else owner
        _initialise(child, fresh, of_child, path)
    if name in fresh:
        owner._init_weights(module)


def _trust_batches(model: transformers.PreTrainedModel) -> None:
    """Keep a model from looking for padding in batches without a mask: that would wait for the
    device, and warn of a text that ends in the padding token."""
    for module in model.modules():
        if isinstance(module, transformers.PreTrainedModel):
            module.warn_if_padding_and_no_attention_mask = lambda *_: None


def _checkpoint_activations(model: transformers.PreTrainedModel) -> None:
    if not model.supports_gradient_checkpointing:
        what = f"a {type(model).__name__} cannot do it; set it to false, or choose another model"
        raise TaskError.at("settings.gradient_checkpointing", what)
    older_name = "gradient_checkpointing_enable"  # before transformers 5.23
    enable = getattr(model, "activation_checkpointing_enable", None) or getattr(model, older_name)
    enable({"use_reentrant": False})  # or a layer above frozen ones would get no gradients


def _set_dropout(model: transformers.PreTrainedModel, dropout: float) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
        attributes = dict(vars(module))
        for name, value in attributes.items():
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, dropout)
    config = model.config
    for name, value in config.to_dict().items():
        stated = name.endswith(("dropout", "dropout_prob", "dropout_rate"))
        if stated and isinstance(value, float):
            setattr(config, name, dropout)


def _freeze(model: transformers.PreTrainedModel, count: int) -> None:
    layers = _layers_of(model)
    if not layers or count > len(layers):
        what = f"must be at most {len(layers)}, the layers of this model, not {count}"
        raise TaskError.at("settings.freeze_layers", what)
    for name, module in model.base_model.named_modules():
        if name == "embeddings" or isinstance(module, nn.Embedding):
            module.requires_grad_(False)
    for layer in layers[:count]:
        layer.requires_grad_(False)


def _layers_of(model: transformers.PreTrainedModel) -> list[nn.Module]:
    # A configuration with its own code may not state the number of layers.
    depth = getattr(model.config, "num_hidden_layers", None)
    for module in model.base_model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            return list(module)
    return []
