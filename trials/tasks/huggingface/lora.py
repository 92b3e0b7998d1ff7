"""Low-rank adapters (LoRA) in a Hugging Face model, by peft.

Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models" (arXiv 2106.09685). The
adapters are put into the model itself: its class, its head and how it is called stay as they were.

The base does not train. It is loaded in the type of the products (`Precision`), so that no product
copies it, and a run on the CPU shares the memory of its template. Adapters, and modules that train
in full, are in float32.

A checkpoint holds the trained weights alone, in peft's files: `adapter_model.safetensors` and
`adapter_config.json`. `TransformerFiles.merge` makes a whole model of it.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import transformers
from torch import nn
from transformers.pytorch_utils import Conv1D
from transformers.utils import GENERATION_CONFIG_NAME

from trials.checkpoints.weights import MODEL, Weights, write
from trials.contract import TaskError
from trials.devices.precision import Precision
from trials.loop.optim.depths import hidden_matrices
from trials.settings import Settings, nearest
from trials.tasks.huggingface.pretrained import write_description

ADAPTERS, CONFIG = "adapter_model.safetensors", "adapter_config.json"  # peft's names of the files
AUTO = "auto"
_NAME = "default"
_ADAPTER = ".lora_"
_PREFIX = "base_model.model."  # the prefix that peft writes before the model's own names


@dataclass(frozen=True)
class Base:
    """The weights that adapters belong to."""

    name: str | None
    """The pretrained model in the study file; None for a model from scratch, whose weights derive
    from the trial's seed."""
    revision: str | None  # the hub's commit; None for a local folder
    dtype: torch.dtype  # the type of the weights in the model's own files


SCRATCH = Base(name=None, revision=None, dtype=torch.float32)
"""The base of adapters in a model that is built, not loaded."""


def base_dtype(settings: Settings, device: torch.device) -> torch.dtype:
    """The type to load a model in: float32, or the type of the arithmetic for frozen weights."""
    if not settings.lora:
        return torch.float32
    return Precision(settings.precision, device).dtype


Fresh = frozenset[str]
"""The modules without pretrained weights. A model from scratch ("" among them) has no others."""


def trained_modules(model: transformers.PreTrainedModel, fresh: Fresh) -> list[str]:
    """The modules that train in full beside the adapters: by peft's convention the head of a
    classifier, and modules without pretrained weights where others have some. A head that scores
    tokens is pretrained like the body, and stays frozen with it."""
    trained = _head_of(model)
    if "" in fresh:
        return trained
    new = [name for name in fresh if not _within(name, trained)]
    return [*trained, *sorted(new)]


def _head_of(model: transformers.PreTrainedModel) -> list[str]:
    # A model that is its own base, such as T5, has no head beside its (tied) embeddings.
    if model.base_model is model or model.get_output_embeddings() is not None:
        return []
    head = []
    for name, module in model.named_children():
        has_weights = next(module.parameters(), None) is not None
        if name != model.base_model_prefix and has_weights:
            head.append(name)
    return head


def _within(name: str, modules: list[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def copied(model: transformers.PreTrainedModel, fresh: Fresh) -> transformers.PreTrainedModel:
    """A copy to put adapters into. Modules that train in full are copied, in float32; all other
    weights share the memory of the model, which nobody changes. A model from scratch is copied
    whole: its weights derive from the trial's seed."""
    if "" in fresh:
        return copy.deepcopy(model)
    trained = trained_modules(model, fresh)
    # The copies for `deepcopy`, by the ids of the parameters.
    shared: dict[int, Any] = {}
    for name, parameter in model.named_parameters():
        if not _within(name, trained):
            shared[id(parameter)] = nn.Parameter(parameter.data, requires_grad=False)
    new = copy.deepcopy(model, shared)
    for name in trained:
        new.get_submodule(name).float()
    return new


def add(model: transformers.PreTrainedModel, settings: Settings, fresh: Fresh, base: Base) -> None:
    """Put adapters into a model, and let nothing train but them and `trained_modules`. `model`: a
    copy by `copied`; changed in place. The adapters are initialised from torch's random state.
    Raises TaskError if a target is not a linear module of this model."""
    import peft  # seconds to import, and most trials do without
    from peft.tuners.tuners_utils import cast_adapter_dtype

    trained = trained_modules(model, fresh)
    whole = {name for name, _ in model.named_parameters() if _within(name, trained)}
    targets = _targets(model, settings.lora_targets, trained)
    config = peft.LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        target_modules=targets,
        # GPT-2 transposes.
        fan_in_fan_out=all(isinstance(model.get_submodule(name), Conv1D) for name in targets),
        base_model_name_or_path=base.name,
        revision=base.revision,
    )
    peft.inject_adapter_in_model(config, model)
    cast_adapter_dtype(model, _NAME)
    model.config.dtype = base.dtype  # the type of a merged model
    # For people who read the file. Given earlier, peft would put a copy of each beside it.
    config.modules_to_save = trained or None
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name in whole or _ADAPTER in name


def _targets(model: transformers.PreTrainedModel, wanted: str, trained: list[str]) -> list[str]:
    """The full names of the modules to adapt; never a module that trains in full, or shares its
    weights with the embeddings. With auto these are all linear modules of the layers, which matter
    more than the rank (Dettmers et al. 2023, arXiv 2305.14314)."""
    is_tied = getattr(model.config, "tie_word_embeddings", False)
    head = model.get_output_embeddings() if is_tied else None
    linear = []
    for name, module in model.named_modules():
        is_linear = isinstance(module, nn.Linear | Conv1D) and module is not head
        if is_linear and not _within(name, trained):
            linear.append(name)
    if wanted == AUTO:
        hidden = hidden_matrices(model)
        return [name for name in linear if f"{name}.weight" in hidden]
    asked = [part.strip() for part in wanted.split(",")]
    known = {_last_word(name) for name in linear}
    for name in asked:
        if name not in known:
            what = f"{name} is not a linear module of this model that is frozen"
            raise TaskError.at("settings.lora_targets", f"{what}; {nearest(name, known)}")
    return [name for name in linear if _last_word(name) in asked]


def _last_word(name: str) -> str:
    return name.rpartition(".")[2]


class TransformerFiles:
    """A model with its tokenizer in the folder of a checkpoint (a `workload.Stored`). `beside`:
    other files, such as the tokenizer's, by name."""

    def __init__(
        self,
        model: transformers.PreTrainedModel,
        base: Base,
        beside: Mapping[str, bytes],
        device: torch.device,
    ) -> None:
        self._model, self._base, self._beside, self._device = model, base, beside, device
        self._is_adapted = any(_ADAPTER in name for name, _ in model.named_parameters())

    def weights(self) -> Weights:
        """The model's weights; with adapters, the trained weights alone."""
        if not self._is_adapted:
            return {MODEL: self._model.state_dict()}
        import peft

        held: dict[str, torch.Tensor] = {}
        whole: dict[str, torch.Tensor] = {}
        for name, parameter in self._model.named_parameters():
            if _ADAPTER in name:
                held[name] = parameter.detach()
            elif parameter.requires_grad:
                held[name] = whole[name] = parameter.detach()
        adapters = peft.get_peft_model_state_dict(self._model, held, save_embedding_layers=False)
        trained = adapters | whole
        return {ADAPTERS: {f"{_PREFIX}{name}": tensor for name, tensor in trained.items()}}

    def write(self, folder: Path, weights: Weights) -> None:
        model = self._model
        write(weights, folder)
        write_description(model, folder)
        if self._is_adapted:
            kind = type(model)
            mapping = {"base_model_class": kind.__name__, "parent_library": kind.__module__}
            model.peft_config[_NAME].save_pretrained(str(folder), auto_mapping_dict=mapping)
        generation = getattr(model, "generation_config", None)
        if generation is not None:
            generation.to_json_file(folder / GENERATION_CONFIG_NAME)
        for name, content in self._beside.items():
            (folder / name).write_bytes(content)

    def read(self, folder: Path) -> None:
        device = str(self._device)
        if not self._is_adapted:
            safetensors.torch.load_model(self._model, str(folder / MODEL), device=device)
            return
        import peft

        found = safetensors.torch.load_file(folder / ADAPTERS, device=device)
        loaded = peft.set_peft_model_state_dict(self._model, found)
        assert not loaded.unexpected_keys, loaded.unexpected_keys

    def merge(self, folder: Path) -> None:
        """Write a plain model, equal to the model with adapters, into the folder of its checkpoint,
        which loses the files of the adapters. The model itself loses them too. A merged weight is
        computed in float32 and saved in the type of the base's own files."""
        model, dtype = self._model, self._base.dtype
        model.to("cpu")
        _unload(model, dtype, merge=True)
        model.to(dtype)
        model.save_pretrained(folder)
        for path in folder.glob("*.safetensors"):
            path.chmod(folder.stat().st_mode & 0o666)  # safetensors makes its files private
        for name in (ADAPTERS, CONFIG):
            (folder / name).unlink(missing_ok=True)

    def take(self, folder: Path) -> None:
        """Load the weights of a merged model, in the base's type, instead of untrained adapters."""
        model = self._model
        frozen = next(tensor for tensor in model.parameters() if not tensor.requires_grad)
        device, dtype = frozen.device, frozen.dtype
        _unload(model, dtype, merge=False)
        for file in sorted(folder.glob("model*.safetensors")):
            tensors = safetensors.torch.load_file(file)
            loaded = model.load_state_dict(tensors, strict=False, assign=True)
            assert not loaded.unexpected_keys, loaded.unexpected_keys
        model.tie_weights()
        model.to(device, dtype)


def _unload(model: nn.Module, dtype: torch.dtype, *, merge: bool) -> None:
    from peft.tuners.lora import LoraLayer

    for name, module in list(model.named_modules()):
        if not isinstance(module, LoraLayer):
            continue
        if merge:
            module.float()
            module.merge(safe_merge=True)  # in a copy: others may share the base's memory
        model.set_submodule(name, module.get_base_layer().to(dtype))
