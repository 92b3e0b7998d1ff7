"""A pretrained model that a study file names, and whether code that it brings may run.

Most models are weights for a network that transformers has. Some bring Python files of their own, which run with the
user's rights as soon as the model is loaded (`auto_map` in their config.json or tokenizer_config.json). They are
refused, unless the study file says `trust_remote_code: true`. That word travels with the model's name, so that nothing
that loads a part of it can forget or replace it; what a checkpoint or a cache holds is never asked, nor run.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.contract import Problem, TaskError
from trials.tasks.description import Field

KEY = "trust_remote_code"
TRUST = Field(KEY, (bool,), "true lets code that a model brings run, with your rights; false where it is missing")
"""The field of every kind of task that can name a pretrained model."""
CONFIG, TOKENIZER = "config.json", "tokenizer_config.json"
_LOCK = ".hpsearch.lock"
_MISTAKES = (
    ImportError, AttributeError, NameError, TypeError, LookupError, SyntaxError, AssertionError, NotImplementedError,
)  # fmt: skip
"""What code raises that is wrong, or lacks a package."""


@dataclass(frozen=True)
class Pretrained:
    """A model with weights.

    Args:
        name: A hub id, or the absolute path of a local folder.
        trusted: Whether the study file lets code that it brings run.
    """

    name: str
    trusted: bool = False

    @property
    def folder(self) -> Path | None:
        """Where it lies on this machine; None for a model of the hub."""
        return Path(self.name) if Path(self.name).is_dir() else None

    def __str__(self) -> str:
        return self.name


@contextmanager
def loading(model: Pretrained) -> Iterator[None]:
    """Around whatever loads a part of a model (configuration, tokenizer, weights).

    transformers copies a model's code into a folder of its own, file by file, and imports it there. A process that
    starts while another one copies could import half a file: trusted models are loaded by one process at a time.

    Raises:
        TaskError: It cannot be found or loaded, brings code without being trusted, or that code fails.
    """
    try:
        if not model.trusted:
            yield
            return
        with _alone():
            yield
    except (OSError, ValueError) as error:
        raise TaskError([_refusal(model) if _wants_code(model, error) else _not_loadable(model, error)]) from error
    except _MISTAKES as error:
        if not model.trusted:
            raise
        what = f"{model.name!r} cannot be loaded: {type(error).__name__}: {_first_line(error)}"
        hint = "mend the code that it brings, or install what that needs"
        raise TaskError([Problem("task.model", f"{what}; {hint}")]) from error


def problems_with(model: object, tokens: bool) -> list[Problem]:
    """That a local model needs code and is not trusted; one of the hub tells when it is loaded.

    Args:
        model: What a task part names as its model.
        tokens: Whether its tokenizer is needed.
    """
    if not isinstance(model, Pretrained) or model.trusted or not (model.folder and brings_code(model)):
        return []
    from transformers import AutoConfig, AutoTokenizer  # seconds to import, and most models do without

    try:
        with loading(model):
            AutoConfig.from_pretrained(model.name, trust_remote_code=model.trusted)
            if tokens:
                AutoTokenizer.from_pretrained(model.name, trust_remote_code=model.trusted)
    except TaskError as error:
        return error.problems
    return []


def brings_code(model: Pretrained) -> bool:
    """Whether it may bring code; of a model of the hub nothing is known."""
    return model.folder is None or bool(references(model.folder))


def references(folder: Path) -> list[str]:
    """The classes that a local model brings, each as ``file.Class``, or ``owner/model--file.Class`` of another one."""
    maps = [_read(folder / name).get("auto_map") for name in (CONFIG, TOKENIZER)]
    parts = [part for found in maps for part in (found.values() if isinstance(found, Mapping) else found or [])]
    flat = [name for part in parts for name in (part if isinstance(part, list) else [part])]
    return [name for name in flat if isinstance(name, str)]


def write_description(model: Any, folder: Path) -> None:
    """Write a model's configuration into a folder, and its code where it brought some: whoever loads the folder has to
    trust it.

    Args:
        model: A model of transformers.
        folder: Where its weights are written to.
    """
    if model._auto_class is not None:  # transformers sets it on classes that come from a model's own files
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


def _read(path: Path) -> Mapping[str, Any]:
    """A JSON file that may be missing or broken: whoever loads the model says so."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _wants_code(model: Pretrained, error: Exception) -> bool:
    """Whether transformers refuses to run code; it has no error of its own for that."""
    return not model.trusted and isinstance(error, ValueError) and KEY in str(error)


def _refusal(model: Pretrained) -> Problem:
    what = f"{model.name!r} brings code of its own, which would run with your rights"
    return Problem("task.model", f"{what}; if you trust it, write {KEY}: true under task")


def _not_loadable(model: Pretrained, error: Exception) -> Problem:
    return Problem(
        "task.model", f"{model.name!r} cannot be loaded: {_first_line(error)}; name a local folder or a hub id"
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
