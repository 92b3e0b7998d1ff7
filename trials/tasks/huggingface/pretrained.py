"""Pretrained models: errors of loading, and the files of a configuration with its code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trials.contract import TaskError
from trials.descriptions.models import KEY, Pretrained
from trials.foreign import line_of, text_of


@contextmanager
def loading(model: Pretrained) -> Iterator[None]:
    """Load a part of a model (configuration, tokenizer, weights).

    Raises:
        TaskError: It cannot be found or loaded, lacks a package, or brings code and is not trusted.
    """
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        raise TaskError.at("task.model", _mistake(model, error)) from error


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
    return f"{model.name!r} cannot be loaded: {line_of(error)}; name a local folder or a hub id"
