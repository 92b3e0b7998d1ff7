"""Pretrained models as they are loaded and written: errors for the user, code that they bring."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trials.contract import Problem, TaskError
from trials.descriptions.models import KEY, Pretrained

_LOCK = ".hpsearch.lock"
_MISTAKES = (
    ImportError, AttributeError, NameError, TypeError, LookupError, SyntaxError, AssertionError,
    NotImplementedError,
)  # fmt: skip
"""The errors of code that is wrong or lacks a package."""


@contextmanager
def loading(model: Pretrained) -> Iterator[None]:
    """Around whatever loads a part of a model (configuration, tokenizer, weights).

    transformers copies a model's code into a folder of its own, file by file, and imports it there.
    A process that starts while another one copies could import half a file: trusted models are
    loaded by one process at a time.

    Raises:
        TaskError: It cannot be found or loaded, brings code without being trusted, or that code
            fails.
    """
    try:
        if not model.trusted:
            yield
            return
        with _alone():
            yield
    except (OSError, ValueError) as error:
        refused = _wants_code(model, error)
        problem = _refusal(model) if refused else _not_loadable(model, error)
        raise TaskError([problem]) from error
    except _MISTAKES as error:
        if not model.trusted:
            raise
        what = f"{model.name!r} cannot be loaded: {type(error).__name__}: {_first_line(error)}"
        hint = "fix the code that it brings, or install what that needs"
        raise TaskError.at("task.model", f"{what}; {hint}") from error


def problems_with(model: object) -> list[Problem]:
    """The mistakes of a local model that its configuration shows, such as that it needs code and is
    not trusted. A model on the hub is looked at when it is loaded.

    Args:
        model: What a task part names as its model.
    """
    if not isinstance(model, Pretrained) or model.trusted or model.folder is None:
        return []
    from transformers import AutoConfig  # seconds to import, and most models do without

    try:
        with loading(model):
            AutoConfig.from_pretrained(model.name, trust_remote_code=False)
    except TaskError as error:
        return error.problems
    return []


def write_description(model: Any, folder: Path) -> None:
    """Write a model's configuration into a folder, and its code if it brought some. Loading the
    folder then requires trust in that code.

    Args:
        folder: Where its weights are written to.
    """
    # transformers sets it on classes that come from a model's own files.
    if model._auto_class is not None:
        from transformers.dynamic_module_utils import custom_object_save

        custom_object_save(model, folder, config=model.config)
    model.config.save_pretrained(folder)


@contextmanager
def _alone() -> Iterator[None]:
    """One process at a time, of all that share transformers' folder for the code of models."""
    from transformers import dynamic_module_utils

    home = Path(dynamic_module_utils.HF_MODULES_CACHE)
    home.mkdir(parents=True, exist_ok=True)
    with (home / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _wants_code(model: Pretrained, error: Exception) -> bool:
    """True if transformers refuses to run code; it has no error of its own for that."""
    return not model.trusted and isinstance(error, ValueError) and KEY in str(error)


def _refusal(model: Pretrained) -> Problem:
    what = f"{model.name!r} brings code of its own, which would run with your rights"
    return Problem("task.model", f"{what}; if you trust it, write {KEY}: true under task")


def _not_loadable(model: Pretrained, error: Exception) -> Problem:
    what = f"{model.name!r} cannot be loaded: {_first_line(error)}"
    return Problem("task.model", f"{what}; name a local folder or a hub id")


def _first_line(error: Exception) -> str:
    said = str(error).strip() or type(error).__name__
    return said.splitlines()[0]
