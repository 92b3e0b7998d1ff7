"""The command line of a W&B sweep.

What W&B calls macros, such as ``${args}``, are filled in, too. A macro is a word of its own, and
stands for several words. ``${envvar:NAME}`` may be a part of a word. The values are those that W&B
puts in, in the form that it gives them.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from trials.contract import Problem
from trials.descriptions.command_line import CommandLine

JSON_FILE = "args_json_file"
_MACRO = re.compile(r"(?<!\S)\$\{(\w+)\}(?!\S)")
_VARIABLE = re.compile(r"\$\{envvar:(\w+)\}")


def _without_false(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return [f"--{name}={value}"]


MACROS: Mapping[str, Callable[[str, Any], list[str]]] = {
    "args": lambda name, value: [f"--{name}={value}"],
    "args_no_equals": lambda name, value: [f"--{name}", str(value)],
    "args_no_hyphens": lambda name, value: [f"{name}={value}"],
    "args_no_boolean_flags": _without_false,
    "args_append_hydra": lambda name, value: [f"+{name}={value}"],
    "args_override_hydra": lambda name, value: [f"++{name}={value}"],
}
"""The words of each parameter, by the name of a macro."""
WITH_JSON = ("args_json", JSON_FILE)  # macros that are one word for all parameters


class SweepLine(CommandLine):
    """The command line of a sweep, with macros as placeholders. Raises as `CommandLine`."""

    def __init__(self, text: str) -> None:
        self._text = _VARIABLE.sub(r"{$\1}", text)
        super().__init__(_MACRO.sub("", self._text))

    @property
    def names(self) -> frozenset[str]:
        """The names of its placeholders, without macros."""
        return frozenset(name for name in super().names if not name.startswith("$"))

    def problem_with_macros(self) -> Problem | None:
        """A macro that W&B does not have."""
        known = [*MACROS, *WITH_JSON]
        for name in sorted(set(_MACRO.findall(self._text)).difference(known)):
            what = f"${{{name}}} is not a macro of W&B; use {', '.join(known)}"
            return Problem("task.run", what)
        return None

    def expanded(
        self, values: Mapping[str, Any], config: Mapping[str, Any], json_file: str
    ) -> list[str]:
        """The words of a trial's command: placeholders have `values`, macros the `config`."""
        of_all = {JSON_FILE: [json_file], "args_json": [json.dumps(dict(config))]}

        def words_of(macro: re.Match[str]) -> str:
            name = macro[1]
            words = of_all.get(name)
            if words is None:
                words = [each for item in config.items() for each in MACROS[name](*item)]
            return shlex.join(words).replace("{", "{{").replace("}", "}}")

        line = CommandLine(_MACRO.sub(words_of, self._text))
        variables = {name[1:] for name in line.names if name.startswith("$")}
        told = {f"${name}": os.environ.get(name, name) for name in variables}
        return line.filled({**values, **told})
