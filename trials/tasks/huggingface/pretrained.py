"""Pretrained models: errors of loading, missing weights, and the files of a configuration."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trials.contract import TaskError
from trials.descriptions.models import ADAPTER_CONFIG, KEY, Pretrained
from trials.foreign import line_of, text_of
from trials.settings import some

log = logging.getLogger(__name__)

MOST_NAMED = 5  # weights that a message lists
WRAPPERS = ("_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
"""The words that torch.compile, data parallelism, FSDP and its checkpoints put into names."""


@contextmanager
def loading(model: Pretrained) -> Iterator[None]:
    """Load a part of a model (configuration, tokenizer, weights). Raises TaskError if it cannot be
    found or loaded, lacks a package, or brings code and is not trusted."""
    try:
        yield
    except (RuntimeError, MemoryError):  # most of them from a lack of memory
        raise
    except Exception as error:
        raise TaskError.at("task.model", _mistake(model, error)) from error


def new_weights(model: Pretrained, loaded: Any, info: Mapping[str, Any]) -> list[str]:
    """The names of a loaded model's weights that its files do not have: those of a new head.
    `info`: the second value of `from_pretrained`. Raises TaskError if weights of its body are
    missing or have another shape, so they would be random."""
    mismatched = [name for name, *_ in info["mismatched_keys"]]
    absent = {*info["missing_keys"], *mismatched}
    names = [name for name in loaded.state_dict() if name in absent]
    body = [name for name in names if not _in_head(name, loaded)]
    if body:
        raise TaskError.at("task.model", _lacking(model, body, info))
    if names:
        log.warning(
            "%s has no weights for %s, which train from random ones", model, some(names, MOST_NAMED)
        )
    return names


def written(auto: Any, folder: Path | str) -> Any:
    """A whole model that a training wrote, to be evaluated. Code in its folder is not run. `auto`
    is the class of transformers that loads it. Raises ValueError if it lacks weights, or holds
    adapters alone."""
    if (Path(folder) / ADAPTER_CONFIG).is_file():
        what = "holds adapters (LoRA), not a model; merge them, as docs/final-training.md shows"
        raise ValueError(f"{folder} {what}")
    from transformers.utils import logging as of_transformers

    of_transformers.disable_progress_bar()
    of_transformers.set_verbosity_error()  # it would list what is missing as a table
    model, info = auto.from_pretrained(folder, output_loading_info=True, trust_remote_code=False)
    if info["missing_keys"]:
        names = sorted(info["missing_keys"])
        raise ValueError(f"{folder} has no weights for {some(names, MOST_NAMED)}; it is not whole")
    return model.eval()


def _in_head(name: str, loaded: Any) -> bool:
    base, words = loaded.base_model, name.split(".")
    module = loaded.get_submodule(".".join(words[:-1]))
    if hasattr(base, "get_classifier"):  # of timm, inside a wrapper of transformers
        heads = base.get_classifier()
        return module in (heads if isinstance(heads, tuple) else (heads,))
    if base is not loaded:
        # A pooler serves one purpose, and models that were trained for others have none.
        is_outside: bool = words[0] != loaded.base_model_prefix
        return is_outside or "pooler" in words
    of_tokens = loaded.get_output_embeddings()
    if of_tokens is not None:
        return module is of_tokens
    *_, last = [str(each) for each in loaded.state_dict()]
    return words[0] == last.partition(".")[0]


def _lacking(model: Pretrained, body: list[str], info: Mapping[str, Any]) -> str:
    shapes = {name: (stored, built) for name, stored, built in info["mismatched_keys"]}
    if body[0] in shapes:
        stored, built = map(tuple, shapes[body[0]])
        what = f"{body[0]} of {model.name!r} has the shape {stored}, and by its config.json {built}"
        return f"{what}; name a folder whose config.json belongs to its weights"
    what = f"{model.name!r} has no weights for {some(body, MOST_NAMED)}, which would be random"
    others = sorted(info["unexpected_keys"])
    hint = "name a folder whose config.json belongs to its weights"
    if any(word in name.split(".") for name in others for word in WRAPPERS):
        what = f"{what}, and has weights of a wrapper, such as {others[0]}"
        hint = "save the model inside: model._orig_mod after torch.compile, model.module after DDP"
    elif others:
        what = f"{what}, and has others, such as {others[0]}"
    return f"{what}; {hint}"


def write_description(model: Any, folder: Path) -> None:
    """Write a model's configuration beside its weights, with the code that it brought. Loading the
    folder then requires trust in that code."""
    # transformers sets it on classes of a model's own files.
    if model._auto_class is not None:
        from transformers.dynamic_module_utils import custom_object_save

        custom_object_save(model, folder, config=model.config)
    model.config.save_pretrained(folder)


def _mistake(model: Pretrained, error: Exception) -> str:
    # transformers has no error of its own for code that is not trusted.
    if not model.trusted and isinstance(error, ValueError) and KEY in text_of(error):
        what = f"{model.name!r} brings code of its own, which would run with your rights"
        return f"{what}; if you trust it, write {KEY}: true under task"
    text = line_of(error)
    if not isinstance(error, OSError | ValueError | ImportError):
        text = f"{type(error).__name__} {text}"
    return f"{model.name!r} cannot be loaded: {text}; name a local folder or a hub id"
