"""Low-rank adapters (LoRA) in a Hugging Face model, by peft.

Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models" (arXiv 2106.09685). The adapters are put into the
model itself: its class, its head and how it is called stay as they were.

A checkpoint has two files. `model.safetensors` holds the weights with the adapters merged in, under the model's own
names, so that anyone loads it without peft. Merging rounds, and cannot be undone, so `adapters.safetensors` beside it
holds exactly what was trained, and a run continues from that: all else is as the model was before.
"""

from __future__ import annotations

from pathlib import Path

import safetensors.torch
import torch
import transformers
from torch import nn
from transformers.pytorch_utils import Conv1D

from trials.contract import Problem, TaskError
from trials.depths import hidden_matrices
from trials.settings import Settings, nearest
from trials.weights import MODEL, Weights

ADAPTERS = "adapters.safetensors"
AUTO = "auto"
_ADAPTER = ".lora_"
_ADAPTED = ".base_layer."


def add(model: transformers.PreTrainedModel, settings: Settings, fresh: frozenset[str]) -> None:
    """Put adapters into a model, and let nothing train but them and the head.

    Args:
        model: The model; changed in place. The adapters are initialised from torch's random state.
        settings: Rank, alpha and targets.
        fresh: Names of the modules without pretrained weights: they train with the head, unless it is all of them.

    Raises:
        TaskError: A target is no linear module of this model.
    """
    import peft  # seconds to import, and most trials do without

    targets = _targets(model, settings.lora_targets)
    config = peft.LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        target_modules=targets,
        fan_in_fan_out=all(isinstance(model.get_submodule(name), Conv1D) for name in targets),  # GPT-2 transposes
    )
    # A model that is its own base, such as T5, has no head beside its (tied) embeddings.
    body = "" if model.base_model is model else f"{model.base_model_prefix}."
    trained_too = fresh if "" not in fresh else frozenset()
    for name, parameter in model.named_parameters():
        parameter.requires_grad = not name.startswith(body) or name.rpartition(".")[0] in trained_too
    before = {parameter for parameter in model.parameters() if parameter.requires_grad}
    peft.inject_adapter_in_model(config, model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = parameter in before or _ADAPTER in name


def _targets(model: nn.Module, wanted: str) -> list[str]:
    """The full names of the modules to adapt. With auto these are all linear modules of the layers, which Dettmers et
    al. 2023 (arXiv 2305.14314) found to matter more than the rank."""
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)]
    if wanted == AUTO:
        hidden = hidden_matrices(model)
        return [name for name in linear if f"{name}.weight" in hidden]
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    known = {name.rpartition(".")[2] for name in linear}
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        what = f"{', '.join(unknown) or 'nothing'} is no linear module of this model; "
        hint = nearest(unknown[0], known) if unknown else f"known are {', '.join(sorted(known))}"
        raise TaskError([Problem("settings.lora_targets", what + hint)])
    return [name for name in linear if name.rpartition(".")[2] in names]


def adapted(model: nn.Module) -> bool:
    """Whether a model has adapters."""
    return any(_ADAPTER in name for name, _ in model.named_parameters())


def weights(model: nn.Module) -> Weights:
    """A model's weights for a checkpoint, with adapters as the module says."""
    if not adapted(model):
        return {MODEL: model.state_dict()}
    trained = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    return {MODEL: merged(model), ADAPTERS: trained}


def read(model: nn.Module, folder: Path, device: torch.device) -> None:
    """Load from a checkpoint the `weights` of an equal model."""
    if not adapted(model):
        safetensors.torch.load_model(model, str(folder / MODEL), device=str(device))
        return
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, trained in safetensors.torch.load_file(folder / ADAPTERS, device=str(device)).items():
            parameters[name].copy_(trained)


@torch.no_grad()
def merged(model: nn.Module) -> dict[str, torch.Tensor]:
    """The weights of the plain model that computes what this one does, each tied one once. Changes nothing."""
    weights: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict().items():
        if _ADAPTER in name or tensor.data_ptr() in seen:
            continue
        seen.add(tensor.data_ptr())
        owner, adapted_here, kind = name.rpartition(_ADAPTED)
        if adapted_here and kind == "weight":
            tensor = tensor + model.get_submodule(owner).get_delta_weight("default")  # type: ignore[operator]
        weights[f"{owner}.{kind}" if adapted_here else name] = tensor.contiguous()
    return weights
