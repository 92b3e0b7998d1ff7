"""Which column of a table is what: from options of the command line and a mapping file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from hpsearch.domain.lifecycle import State
from hpsearch.errors import SpecError, UserError
from hpsearch.importing import cells
from hpsearch.importing.runs import Measures
from hpsearch.study_file.reading import refusal
from hpsearch.study_file.text import yaml_source
from hpsearch.study_file.text.messages import problems_of
from hpsearch.study_file.types import Model
from trials.contract import Problem, Unit
from trials.settings import nearest

DIRECTIONS = ("minimize", "maximize")
CURVE = "{resource}"
"""Stands for the resource in the name of a column that holds one point of a curve."""


def _listed(value: Any) -> Any:
    """One word as a list of it, for what is a list only with several objectives."""
    return [value] if isinstance(value, str) else value


def _named(value: Any) -> Any:
    """Names alone as names with themselves: the source calls them the same."""
    if isinstance(value, str):
        return {value: value}
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return {each: each for each in value}
    return value


Named = Annotated[dict[str, str], BeforeValidator(_named)]
Directions = Annotated[list[str], BeforeValidator(_listed)]


class Mapped(Model):
    """What a mapping file says; every key is also an option, apart from `states`."""

    params: Named | None = None
    """By the name of each parameter, its column; or a list of both alike."""
    metric: Named | None = None
    """By the name of each objective, its column; or just its name."""
    direction: Directions | None = None
    """Minimize or maximize; a list where there are several objectives."""
    run: str | None = None
    """The column that names a run; with `resource`, rows of one run are its curve."""
    state: str | None = None
    """The column that says how a run ended."""
    states: dict[str, str] = Field(default_factory=dict)
    """By a word in that column: complete, pruned or failed."""
    resource: str | None = None
    """The column that says how far a run had trained, in a table with a row for each report."""
    curve: str | None = None
    """The columns of a curve, such as `accuracy_{resource}`, in a table with a row for each run."""
    unit: str | None = None
    """What the resource counts."""

    def with_options(self, options: Mapping[str, Any]) -> Mapped:
        """The same with what options state; None states nothing."""
        stated = {name: value for name, value in options.items() if value is not None}
        return self.model_copy(update=stated)

    def measures(self) -> Measures:
        """What runs are compared by.

        Raises:
            UserError: The metric or its direction is missing or wrong.
        """
        if not self.metric:
            raise UserError(
                "it is not said what the runs are compared by",
                "name the metric: --metric NAME, or --metric NAME=COLUMN",
            )
        if not self.direction:
            hint = "add --direction minimize or --direction maximize"
            raise UserError(
                f"it is not said whether less or more {_first(self.metric)} is better", hint
            )
        for word in self.direction:
            if word not in DIRECTIONS:
                raise UserError(f"--direction {word}: must be minimize or maximize")
        if len(self.direction) != len(self.metric):
            what = f"{len(self.metric)} metrics and {len(self.direction)} directions are given"
            raise UserError(what, "give one --direction for each --metric, in the same order")
        return Measures(self.metric, tuple(self.direction), self.resource)

    def known_states(self) -> dict[str, State]:
        """The words for states, with those that the mapping file adds.

        Raises:
            UserError: A word is mapped to something that is not the end of a run.
        """
        known = dict(cells.STATES)
        for word, meaning in self.states.items():
            if meaning not in ("complete", "pruned", "failed"):
                what = f"states: {word}: must be complete, pruned or failed, not {meaning}"
                raise UserError(what)
            known[word.strip().lower()] = State(meaning)
        return known

    def resource_unit(self) -> Unit | None:
        """What the resource counts; None if it is not said.

        Raises:
            UserError: It is not a unit.
        """
        if self.unit is None:
            return None
        if self.unit not in list(Unit):
            raise UserError(f"--unit {self.unit}: must be one of {', '.join(Unit)}")
        return Unit(self.unit)


def _first(names: Mapping[str, str]) -> str:
    return next(iter(names))


def pairs(option: str, text: str) -> dict[str, str]:
    """The names and columns of `lr=learning_rate,depth`.

    Raises:
        UserError: It is not that.
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        theirs = theirs if equals else ours
        if not ours or not theirs:
            raise UserError(f'{option} "{text}": write NAME=COLUMN, or NAME where both are alike')
        if ours in found:
            raise UserError(f'{option} "{text}": {ours} appears twice')
        found[ours] = theirs
    return found


def all_pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """The names and columns of an option that can be repeated.

    Raises:
        UserError: One is not that, or a name appears twice.
    """
    return pairs(option, ",".join(texts))


def load(path: Path) -> Mapped:
    """Read a mapping file.

    Raises:
        UserError: It cannot be read.
        SpecError: It has mistakes; the error lists them.
    """
    text = yaml_source.text_of(path)
    source = yaml_source.read(text)
    if source.problems:
        raise refusal(text, path.name, source.problems)
    if not isinstance(source.value, dict):
        raise SpecError([f"{path.name}: must be a mapping such as params: {{lr: learning_rate}}"])
    problems = []
    for key in source.value:
        if key not in Mapped.model_fields:
            hint = nearest(str(key), Mapped.model_fields)
            problems.append(Problem(str(key), f"unknown key; {hint}"))
    known = {key: value for key, value in source.value.items() if key in Mapped.model_fields}
    try:
        mapped = Mapped.model_validate(known)
    except ValidationError as error:
        problems += problems_of(error, Mapped)
    if problems:
        raise refusal(text, path.name, problems)
    return mapped
