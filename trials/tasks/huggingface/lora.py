"""Low-rank adapters (LoRA) in a Hugging Face model, by peft.

Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models" (arXiv 2106.09685). The
adapters are put into the model itself: its class, its head and how it is called stay as they were.

The base does not train. It is loaded in the type that products are computed in (`Precision`), in
which no product has to copy it, or is held in four bits; and a run on the CPU shares the memory of
its template. What trains - adapters, and modules in full - is held in float32.

A checkpoint holds what trains alone, as peft writes and reads it: `adapter_model.safetensors` and
`adapter_config.json`. `base.json` beside them says which base they belong to.
`trials.tasks.huggingface.merging` makes a whole model.
"""

from __future__ import annotations

import collections
import copy
import importlib.util
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import transformers
from torch import nn
from transformers.pytorch_utils import Conv1D

from trials.checkpoints.manifests import CheckpointError
from trials.checkpoints.weights import MODEL, Weights
from trials.contract import TaskError
from trials.optim.depths import hidden_matrices
from trials.optim.precision import Precision
from trials.settings import Settings, nearest

ADAPTERS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
"""The files of adapters, by the names that peft looks for."""
BASE = "base.json"
"""The file that says which base the adapters of a checkpoint belong to."""
AUTO = "auto"
_NAME = "default"
_ADAPTER = ".lora_"
_PREFIX = "base_model.model."
"""The prefix that peft writes before the model's own names."""
_BITSANDBYTES = "bitsandbytes"


@dataclass(frozen=True)
class Base:
    """The weights that adapters belong to.

    Args:
        name: Of the pretrained model, as the study file names it; None for a model from scratch,
            whose weights derive from the trial's seed.
        revision: The hub's commit; None for a local folder.
        fingerprint: Tells the weights of one model from those of another; None if there is no
            file of them.
        dtype: The type in which the model's own files hold them.
    """

    name: str | None
    revision: str | None
    fingerprint: str | None
    dtype: torch.dtype

    def __str__(self) -> str:
        at = "" if self.revision is None else f" at revision {self.revision}"
        return f"{self.name}{at}"


SCRATCH = Base(name=None, revision=None, fingerprint=None, dtype=torch.float32)
"""The base of adapters in a model that is built, not loaded."""


def base_dtype(settings: Settings, device: torch.device) -> torch.dtype:
    """The type to load a model in: that of the arithmetic where its weights are frozen, else
    float32.

    Raises:
        TaskError: Four bits are asked for and cannot be had.
    """
    if not settings.lora:
        return torch.float32
    if settings.lora_4bit and (why := _no_four_bits(device)):
        raise TaskError.at("settings.lora_4bit", why)
    return Precision(settings.precision, device).dtype


def _no_four_bits(device: torch.device) -> str | None:
    if device.type != "cuda":
        what = f"needs a GPU, and this trial runs on {device.type}"
        return f"{what}; set it to false, or run it on a GPU"
    if importlib.util.find_spec(_BITSANDBYTES) is None:
        what = "needs a package that is not installed"
        return f"{what}; set it to false, or pip install bitsandbytes on every worker"
    return None


def trained_modules(model: transformers.PreTrainedModel, fresh: frozenset[str]) -> list[str]:
    """The modules that train in full beside the adapters: by peft's convention the head of a
    classifier, and whatever has no pretrained weights. A head that scores tokens is pretrained like
    the body, and stays frozen with it.

    Args:
        fresh: Names of the modules without pretrained weights. In a model from scratch ("" among
            them) they are all, and none counts.
    """
    trained = _head_of(model)
    if "" in fresh:
        return trained
    new = [name for name in fresh if not _within(name, trained)]
    return [*trained, *sorted(new)]


def _head_of(model: transformers.PreTrainedModel) -> list[str]:
    # A model that is its own base, such as T5, has no head beside its (tied) embeddings.
    if model.base_model is model:
        return []
    if model.get_output_embeddings() is not None:
        return []
    body = model.base_model_prefix
    head = []
    for name, module in model.named_children():
        if name != body and _weighs(module):
            head.append(name)
    return head


def _weighs(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _within(name: str, modules: list[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def copied(
    model: transformers.PreTrainedModel, fresh: frozenset[str]
) -> transformers.PreTrainedModel:
    """A copy to put adapters into. What trains in full is copied, in float32; all other weights
    share the memory of the model, which nobody changes.

    Args:
        fresh: As for `trained_modules`. A model from scratch is copied whole: its weights derive
            from the trial's seed.
    """
    if "" in fresh:
        return copy.deepcopy(model)
    trained = trained_modules(model, fresh)
    own = _parameters_of(model, trained)
    # What deepcopy is to take for the copy of a parameter, by the parameter's id.
    shared: dict[int, Any] = {}
    for parameter in model.parameters():
        if parameter not in own:
            shared[id(parameter)] = nn.Parameter(parameter.data, requires_grad=False)
    new = copy.deepcopy(model, shared)
    for name in trained:
        new.get_submodule(name).float()
    return new


def _parameters_of(model: nn.Module, modules: list[str]) -> set[nn.Parameter]:
    found = set()
    for name, parameter in model.named_parameters():
        if _within(name, modules):
            found.add(parameter)
    return found


def add(
    model: transformers.PreTrainedModel, settings: Settings, fresh: frozenset[str], base: Base
) -> None:
    """Put adapters into a model, and let nothing train but them and `trained_modules`.

    Args:
        model: What `copied` made; changed in place. The adapters are initialised from torch's
            random state.
        settings: Rank, alpha, targets, and whether the base is held in four bits.
        fresh: As for `trained_modules`.
        base: The weights that they are trained for.

    Raises:
        TaskError: A target is not a linear module of this model.
    """
    import peft  # seconds to import, and most trials do without
    from peft.tuners.tuners_utils import cast_adapter_dtype

    trained = trained_modules(model, fresh)
    whole = _parameters_of(model, trained)
    targets = _targets(model, settings.lora_targets, trained)
    adapted_modules = [model.get_submodule(name) for name in targets]
    config = peft.LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        target_modules=targets,
        # GPT-2 transposes.
        fan_in_fan_out=all(isinstance(module, Conv1D) for module in adapted_modules),
        base_model_name_or_path=base.name,
        revision=base.revision,
    )
    if settings.lora_4bit:
        precision = Precision(settings.precision, torch.device("cuda"))
        _hold_in_four_bits(model, precision.dtype)
    peft.inject_adapter_in_model(config, model)
    cast_adapter_dtype(model, _NAME)
    model.config.dtype = base.dtype  # what a whole model is written in
    # For those who read the file. Given earlier, peft would put a copy of each beside it.
    config.modules_to_save = trained or None
    for name, parameter in model.named_parameters():
        parameter.requires_grad = parameter in whole or _ADAPTER in name


def _targets(model: transformers.PreTrainedModel, wanted: str, trained: list[str]) -> list[str]:
    """The full names of the modules to adapt; never one that trains in full. With auto these are
    all linear modules of the layers, which Dettmers et al. 2023 (arXiv 2305.14314) found to matter
    more than the rank."""
    linear: dict[str, nn.Module] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | Conv1D) and not _within(name, trained):
            linear[name] = module
    if wanted == AUTO:
        hidden = hidden_matrices(model)
        return [name for name in linear if f"{name}.weight" in hidden]
    asked = _asked_for(wanted, linear)
    targets = [name for name in linear if _last_word(name) in asked]
    _refuse_tied(model, targets)
    return targets


def _asked_for(wanted: str, linear: Iterable[str]) -> list[str]:
    names = [part.strip() for part in wanted.split(",")]
    asked = [name for name in names if name]
    known = {_last_word(name) for name in linear}
    unknown = [name for name in asked if name not in known]
    if asked and not unknown:
        return asked
    if unknown:
        named = ", ".join(unknown)
        hint = nearest(unknown[0], known)
    else:
        named = "nothing"
        hint = f"known are {', '.join(sorted(known))}"
    what = f"{named} is not a linear module of this model that is frozen; {hint}"
    raise TaskError.at("settings.lora_targets", what)


def _last_word(name: str) -> str:
    return name.rpartition(".")[2]


def _refuse_tied(model: nn.Module, targets: Iterable[str]) -> None:
    uses: collections.Counter[int] = collections.Counter()
    for _, parameter in model.named_parameters(remove_duplicate=False):
        uses[id(parameter)] += 1
    for name in targets:
        weight = model.get_submodule(name).weight
        if uses[id(weight)] > 1:
            what = f"{name} shares its weights with another module, such as the embeddings"
            raise TaskError.at("settings.lora_targets", f"{what}; leave it out")


def _hold_in_four_bits(model: transformers.PreTrainedModel, dtype: torch.dtype) -> None:
    """Replace the matrices of the layers by ones that are held as four-bit floats (NF4, arXiv
    2305.14314) as soon as they are on the device, one after the other."""
    import bitsandbytes

    hidden = hidden_matrices(model)
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    for name in linear:
        if f"{name}.weight" not in hidden:
            continue
        dense = model.get_submodule(name)
        held = bitsandbytes.nn.Linear4bit(
            dense.in_features,
            dense.out_features,
            dense.bias is not None,
            dtype,
            quant_type="nf4",
            device="meta",
        )
        held.weight = bitsandbytes.nn.Params4bit(
            dense.weight.data, requires_grad=False, quant_type="nf4"
        )
        held.bias = dense.bias
        model.set_submodule(name, held)
    model.is_loaded_in_4bit = True  # peft asks for it


def adapted(model: nn.Module) -> bool:
    """True if a model has adapters."""
    return any(_ADAPTER in name for name, _ in model.named_parameters())


def weights(model: nn.Module) -> Weights:
    """A model's weights for a checkpoint: of one with adapters, those that train."""
    if not adapted(model):
        return {MODEL: model.state_dict()}
    import peft

    held: dict[str, torch.Tensor] = {}
    whole: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        if _ADAPTER in name:
            held[name] = parameter.detach()
        elif parameter.requires_grad:
            held[name] = whole[name] = parameter.detach()
    adapters = peft.get_peft_model_state_dict(model, held, save_embedding_layers=False)
    trained = adapters | whole
    return {ADAPTERS: {f"{_PREFIX}{name}": tensor for name, tensor in trained.items()}}


def describe(model: transformers.PreTrainedModel, base: Base, folder: Path) -> None:
    """Write beside the `weights` of a model what they are; nothing for a model without adapters."""
    if not adapted(model):
        return
    kind = type(model)
    mapping = {"base_model_class": kind.__name__, "parent_library": kind.__module__}
    model.peft_config[_NAME].save_pretrained(str(folder), auto_mapping_dict=mapping)
    about = {"model": base.name, "revision": base.revision, "fingerprint": base.fingerprint}
    (folder / BASE).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def read(model: nn.Module, base: Base, folder: Path, device: torch.device) -> None:
    """Load from a checkpoint the `weights` of an equal model.

    Args:
        base: What the model's frozen weights are.
        folder: The checkpoint.

    Raises:
        CheckpointError: It holds other adapters.
        TaskError: Its adapters belong to another base.
    """
    if not adapted(model):
        safetensors.torch.load_model(model, str(folder / MODEL), device=str(device))
        return
    _demand_the_same(base, folder)
    import peft

    found = safetensors.torch.load_file(folder / ADAPTERS, device=str(device))
    if found.keys() != weights(model)[ADAPTERS].keys():
        what = "holds adapters of other modules than this trial trains; start it afresh"
        raise CheckpointError(f"{folder} {what}")
    peft.set_peft_model_state_dict(model, found)


def _demand_the_same(base: Base, folder: Path) -> None:
    about = json.loads((folder / BASE).read_text(encoding="utf-8"))
    if about["fingerprint"] == base.fingerprint:
        return
    theirs = Base(about["model"], about["revision"], about["fingerprint"], base.dtype)
    trained = f"the adapters in {folder} were trained for other weights (those of {theirs})"
    hint = "restore that model, or start the trial afresh"
    raise TaskError.at("task.model", f"{trained} than {base} has now; {hint}")
