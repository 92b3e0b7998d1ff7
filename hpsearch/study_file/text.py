"""The study file as text: it is read, and gets another budget. Configurations of a command line,
such as ``--enqueue "learning_rate=1e-4, batch_size=32"``."""

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from hpsearch.errors import UserError
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.space import contains
from trials.data import files
from trials.descriptions import yaml_source
from trials.descriptions.cells import nested_in, number_in


def text_of(path: Path, kind: str = "file", hint: str = "check the path") -> str:
    """The text of a file; errors name it by its kind, and give the hint if there is none. Raises
    UserError if it cannot be read, is not text, or is too large."""
    try:
        return files.text_of(path)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such {kind}", hint) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        what = f"{path}:{line}: is not UTF-8 text ({error.reason})"
        raise UserError(what, files.conversion(path, error)) from None
    except ValueError as error:
        raise UserError(f"{path} {error}", f"a {kind} is a text file") from None
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}"
        raise UserError(what, "check the path and its permissions") from None


def with_budget(text: str, changes: Mapping[str, float | str]) -> str:
    """The text of a study file without mistakes with other limits under `budget`, such as
    ``{"trials": 80, "wall_clock": "4h"}``; comments are not kept."""
    if not changes:
        return text
    study = yaml_source.read(text).value
    study["budget"] = {**study["budget"], **changes}
    edited: str = yaml.safe_dump(study, sort_keys=False, allow_unicode=True, width=100)
    return edited


OPTION = "--enqueue "  # the option of `run` and `resume` before a configuration

_SECOND_NAME = re.compile(r"\s[^\s=]+\s*=")
_WORDS = {"true": True, "false": False, "null": None}


def configurations(texts: Iterable[str], spec: StudySpec) -> list[dict[str, Any]]:
    """The configurations of texts such as ``learning_rate=1e-4, batch_size=32``, which may be
    incomplete. Raises UserError for any other text, and for what the study cannot try."""
    found = []
    for text in texts:
        params = parameters_of(text, OPTION)
        problems = contains(spec, params)
        if problems:
            raise UserError(f'{OPTION}"{text}": {"; ".join(problems)}')
        found.append(params)
    return found


def parameters_of(text: str, before: str = "") -> dict[str, Any]:
    """The parameters of one text, behind the option `before`. Raises UserError."""
    params: dict[str, Any] = {}
    for part in _parts_of(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        problem = None
        if not equals or not name:
            problem = f"'{part.strip()}' is not NAME=VALUE"
        elif not _in_quotes(value) and _SECOND_NAME.search(value):
            problem = f"a comma is missing in '{part.strip()}'"
        elif name in params:
            problem = f"{name} appears twice"
        if problem is not None:
            hint = f'write it like this: {before}"learning_rate=1e-4, batch_size=32"'
            raise UserError(f'{before}"{text}": {problem}', hint)
        params[name] = value_of(value)
    return params


def _parts_of(text: str) -> list[str]:
    parts = [""]
    depth = 0
    for piece in re.findall(r'"(?:[^"\\]|\\.)*"|.', text, re.DOTALL):
        depth += (piece in ("[", "{")) - (piece in ("]", "}"))
        if piece == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def value_of(text: str) -> Any:
    """A text as a number, true, false, null, a list or a mapping, else without its quotes."""
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    number = number_in(text)
    if number is not None and math.isfinite(number):
        return number
    if text[:1] in ("[", "{"):
        nested = nested_in(text) or yaml_source.read(text).value  # without quotes: [relu, tanh]
        return nested if isinstance(nested, list | dict) else text
    return text[1:-1] if _in_quotes(text) else text


def _in_quotes(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] in "'\""
