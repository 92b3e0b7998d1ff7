"""What each JSON column holds, at every depth: small checks that find the first place where a value is of another kind.

Only what this program reads is looked at: attributes that people and Optuna's samplers keep may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml
from optuna.distributions import BaseDistribution, CategoricalDistribution, json_to_distribution
from pydantic import ValidationError

from hpsearch.frozen import STEP_SCALE
from hpsearch.health import FINDINGS, MEMORY
from hpsearch.lifecycle import State
from hpsearch.records import CONSTRAINT
from hpsearch.reopening import LEFT
from hpsearch.spec import StudyBudget
from hpsearch.store.codec import Damaged, encode


@dataclass(frozen=True, slots=True)
class Wrong:
    """A value that cannot be where it stands."""

    what: str
    """The value, and what should stand there."""
    at: str = ""
    """The way to it from the column's value, such as ``[0].name``."""

    def inside(self, step: str) -> Wrong:
        """The same, told from one level further out."""
        return Wrong(self.what, step + self.at)

    def __str__(self) -> str:
        return self.what + (f", at {self.at.removeprefix('.')}" if self.at else "")


Shape = Callable[[Any], Wrong | None]
"""Looks at a value that was read from JSON; None where nothing is wrong with it."""


def wrong(value: Any, wanted: str) -> Wrong:
    """A value in the place of what is wanted."""
    try:
        shown = encode(value)
    except RecursionError:
        shown = "values nested without end"
    return Wrong(f"{shown[:40]!r} where {wanted} should stand")


# ------------------------------------------------------------------------------------------------------ shapes


def anything(value: Any) -> Wrong | None:
    """Any value."""
    return None


def number(value: Any) -> Wrong | None:
    """A number that a float can hold, also one that is not finite."""
    return None if _is_number(value) else wrong(value, "a number")


def whole(value: Any) -> Wrong | None:
    """A whole number."""
    return None if isinstance(value, int) and _is_number(value) else wrong(value, "a whole number")


def text(value: Any) -> Wrong | None:
    """A text."""
    return None if isinstance(value, str) else wrong(value, "a text")


def distribution(value: Any) -> Wrong | None:
    """A text that is one of Optuna's distributions as JSON."""
    try:
        distribution_of(value)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return Wrong(f"{str(value)[:40]!r} where a distribution should stand")
    return None


def one_of(words: Collection[str]) -> Shape:
    """One of a few texts."""

    def shape(value: Any) -> Wrong | None:
        return None if isinstance(value, str) and value in words else wrong(value, f"one of {', '.join(words)}")

    return shape


def or_null(of: Shape) -> Shape:
    """A value of a shape, or none."""
    return lambda value: None if value is None else of(value)


def array(of: Shape, least: int = 0) -> Shape:
    """An array of so many values at least, each of the same shape."""

    def shape(value: Any) -> Wrong | None:
        if not isinstance(value, list) or len(value) < least:
            return wrong(value, f"a JSON array{' of values' if least else ''}")
        found = ((i, of(item)) for i, item in enumerate(value))
        return next((each.inside(f"[{i}]") for i, each in found if each is not None), None)

    return shape


def mapping(of: Shape) -> Shape:
    """An object whose values are all of the same shape."""

    def shape(value: Any) -> Wrong | None:
        if not isinstance(value, dict):
            return wrong(value, "a JSON object")
        found = ((key, of(item)) for key, item in value.items())
        return next((each.inside(_step(key)) for key, each in found if each is not None), None)

    return shape


def attributes(known: Mapping[str, Shape], prefixed: Mapping[str, Shape] | None = None) -> Shape:
    """An object of anything, in which some keys, or all with a prefix, have a shape where they are there."""
    by_prefix = prefixed or {}

    def shape_of(key: Any) -> Shape:
        by_start = (each for prefix, each in by_prefix.items() if str(key).startswith(prefix))
        return known.get(key) or next(by_start, anything)

    def shape(value: Any) -> Wrong | None:
        if not isinstance(value, dict):
            return wrong(value, "a JSON object")
        found = ((key, shape_of(key)(item)) for key, item in value.items())
        return next((each.inside(_step(key)) for key, each in found if each is not None), None)

    return shape


def record(fields: Mapping[str, Shape]) -> Shape:
    """An object that has all these keys."""
    known = attributes(fields)

    def shape(value: Any) -> Wrong | None:
        if isinstance(value, dict) and (missing := [name for name in fields if name not in value]):
            return wrong(value, f"a JSON object with {', '.join(missing)}")
        return known(value)

    return shape


# ----------------------------------------------------------------------------------------------------- columns

DIRECTIONS = array(one_of(("minimize", "maximize", "not_set")), least=1)
PARAMS = mapping(anything)
VALUES = array(number)
DISTRIBUTIONS = mapping(distribution)
METRICS = mapping(number)
AGAINST = array(whole)
PACKAGES = mapping(text)
STUDY_USER_ATTRS = attributes({"hpsearch:base": text, "hpsearch:checkpoints": text})
STUDY_SYSTEM_ATTRS = attributes(
    {
        STEP_SCALE: number,
        MEMORY: mapping(array(or_null(whole), least=2)),
        "hpsearch:enqueued": array(mapping(anything)),
        "hpsearch:curve_gp": or_null(record({"values": whole, "theta": or_null(array(number))})),
    }
)
TRIAL_USER_ATTRS = attributes({FINDINGS: array(record(dict.fromkeys(("name", "evidence", "severity"), text)))})
TRIAL_SYSTEM_ATTRS = attributes({LEFT: one_of([state.value for state in State])}, {CONSTRAINT: number})


# ------------------------------------------------------------------------------------------------------ study files


def written_in(spec: str) -> dict[str, Any]:
    """A study file as it is written; empty for a study that was not made from one.

    Raises:
        Damaged: It is no YAML any more.
    """
    try:
        content = yaml.safe_load(spec)
    except (yaml.YAMLError, ValueError):
        raise Damaged("a study file that is no YAML") from None
    return content if isinstance(content, dict) else {}


def budget_in(spec: str) -> StudyBudget | None:
    """The budget of a study file; None for a study that was not made from one.

    Raises:
        Damaged: It is none.
    """
    budget = written_in(spec).get("budget")
    try:
        return None if budget is None else StudyBudget.model_validate(budget)
    except ValidationError:
        raise Damaged("a study file whose budget is none") from None


# --------------------------------------------------------------------------------------- columns that belong together


def unlike(params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> Wrong | None:
    """A parameter whose distribution can never have drawn it; one outside the bounds may have been asked for."""
    for name, drawn_from in distributions.items():
        if name in params and not _may_be_drawn(params[name], drawn_from):
            return wrong(params[name], f"a value of {type(drawn_from).__name__}").inside(_step(name))
    return None


def miscounted(values: Sequence[float] | None, directions: Sequence[str]) -> Wrong | None:
    """Values of objectives that are more or fewer than the study's directions."""
    if values is None or len(values) == len(directions):
        return None
    return wrong(list(values), f"a JSON array of {len(directions)}")


@lru_cache(maxsize=4096)
def distribution_of(text: str) -> BaseDistribution:
    """A distribution of Optuna's from its JSON; trials of one study share theirs.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError: It is none.
    """
    return json_to_distribution(text)


def _may_be_drawn(value: Any, drawn_from: BaseDistribution) -> bool:
    if not isinstance(drawn_from, CategoricalDistribution):
        return _is_number(value)
    try:
        drawn_from.to_internal_repr(value)
    except ValueError:
        return False
    return True


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) < 2**1023


def _step(key: Any) -> str:
    return f".{str(key)[:40]}"
