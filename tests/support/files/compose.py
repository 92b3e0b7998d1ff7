"""The services of `docker/compose.yaml`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

DOCKER = Path(__file__).parents[3] / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def resolved(text: str, variables: Mapping[str, str]) -> str:
    """A compose text with its variables and their defaults filled in; KeyError names one that is
    required."""

    def value(match: re.Match[str]) -> str:
        name, kind, rest = match["name"], match["kind"], match["rest"]
        if variables.get(name):
            return variables[name]
        if kind == ":-":
            return str(rest)
        raise KeyError(name)

    return re.sub(r"(?<!\$)\$\{(?P<name>\w+)(?:(?P<kind>:[-?])(?P<rest>[^}]*))?\}", value, text)
