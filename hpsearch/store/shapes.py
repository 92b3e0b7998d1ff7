"""The contents of each JSON column, at every depth, as types that pydantic checks. Errors name the
first wrong place.

Only what this program reads is looked at: attributes that people and Optuna's samplers keep may
hold anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

import yaml
from annotated_types import MinLen
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    distribution_to_json,
    json_to_distribution,
)
from pydantic import (
    PlainSerializer,
    PlainValidator,
    StrictFloat,
    StrictInt,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from hpsearch.domain.records import CONSTRAINT
from hpsearch.errors import Damaged
from hpsearch.store.codec import encode
from hpsearch.study_file.models import StudyBudget


def wrong(value: Any, wanted: str, at: str = "") -> str:
    """A value in place of what is wanted, and the way to it, such as ``[0].name``."""
    try:
        shown = encode(value)
    except RecursionError:
        shown = "values nested without end"
    what = f"{shown[:40]!r} where {wanted} should be"
    return f"{what}, at {at}" if at else what


class Shape:
    """The type of a JSON column's values, of JSON's own types, dataclasses and distributions.
    Values become objects of the type if it `builds`. With a `prefix`, only members of an object
    whose keys begin so have the type."""

    def __init__(self, type_: Any, *, builds: bool = False, prefix: str = "") -> None:
        self._adapter: TypeAdapter[Any] = TypeAdapter(type_)
        self._builds = builds
        self._prefix = prefix
        self._strict = None if _holds_dataclass(type_) else True
        """Strict, pydantic takes no mapping for a dataclass."""

    def read(self, value: Any) -> Any:
        """The value that stands for one read from JSON."""
        try:
            read = self._validated(value)
        except ValidationError as error:
            raise Damaged(_explained(error.errors(include_url=False)[0])) from None
        return read if self._builds else value

    def plain(self, value: Any) -> Any:
        """A value that `read` gave, as JSON takes it."""
        return self._adapter.dump_python(value) if self._builds else value

    def _validated(self, value: Any) -> Any:
        prefix = self._prefix
        if prefix:
            _OBJECT.validate_python(value, strict=True)
            value = {key: item for key, item in value.items() if key.startswith(prefix)}
        return self._adapter.validate_python(value, strict=self._strict)


def _holds_dataclass(type_: Any) -> bool:
    return is_dataclass(type_) or any(_holds_dataclass(each) for each in get_args(type_))


_OBJECT: TypeAdapter[Any] = TypeAdapter(dict[str, Any])

_WANTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "string_type": "a text",
    "bool_type": "true or false",
    "list_type": "a JSON array",
    "tuple_type": "a JSON array",
    "too_short": "a JSON array of values",
    "dict_type": "a JSON object",
    "mapping_type": "a JSON object",
    "dataclass_type": "a JSON object",
    "distribution": "a distribution",
}
"""By the kind of pydantic's error, what should be in the place."""


def _explained(error: ErrorDetails) -> str:
    kind = error["type"]
    place = error["loc"]
    given = error["input"]
    if kind == "missing":
        return wrong(given, f"a JSON object with {place[-1]}", _path(place[:-1]))
    if kind in ("enum", "literal_error"):
        words = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        return wrong(given, f"one of {words}", _path(place))
    if kind == "distribution":
        shown = str(given)[:40]
        return f"{shown!r} where a distribution should be, at {_path(place)}"
    wanted = _WANTED.get(kind, error["msg"])
    return wrong(given, wanted, _path(place))


def _path(place: Sequence[int | str]) -> str:
    path = ""
    for step in place:
        path += f"[{step}]" if isinstance(step, int) else f".{step[:40]}"
    return path.removeprefix(".")


# ------------------------------------------------------------------------------------ distributions


@lru_cache(maxsize=4096)
def distribution_of(text: str) -> BaseDistribution:
    """A distribution of Optuna's from its JSON, shared by all trials that have the same; raises
    what Optuna does for anything else."""
    return json_to_distribution(text)


def _read_distribution(text: Any) -> BaseDistribution:
    try:
        return distribution_of(text)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise PydanticCustomError("distribution", "not a distribution") from None


StoredDistribution = Annotated[
    BaseDistribution,
    PlainValidator(_read_distribution),
    PlainSerializer(distribution_to_json, return_type=str),
]

# ------------------------------------------------------------------------------------------ columns


@dataclass(frozen=True)
class _Arithmetic:
    """The part of `trials.running.arithmetic.Arithmetic` that is read."""

    threads: StrictInt
    precision: str | None = None
    device: str | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Fitted:
    """The facts that the sampler `curve_gp` keeps about its model."""

    values: StrictInt
    theta: list[StrictFloat] | None
    agreements: list[StrictFloat] = field(default_factory=list)


_NARROWER: dict[str, Shape] = {
    "studies.directions": Shape(
        Annotated[list[Literal["minimize", "maximize", "not_set"]], MinLen(1)]
    ),
    "studies.system_attrs": Shape(dict[str, _Fitted | None], prefix="hpsearch:curve_model"),
    "studies.memory": Shape(dict[str, Annotated[list[int | None], MinLen(2)]]),
    "trials.distributions": Shape(dict[str, StoredDistribution], builds=True),
    "trials.system_attrs": Shape(dict[str, float], prefix=CONSTRAINT),
    "attempts.arithmetic": Shape(_Arithmetic),
}
"""The shapes of columns whose records are looser, or whose values are read in part."""


def shape_of(table: str, column: str, type_: Any) -> Shape:
    """The shape of a JSON column, whose record's field has a type."""
    narrower = _NARROWER.get(f"{table}.{column}")
    return narrower or Shape(type_, builds=_holds_dataclass(type_))


# -------------------------------------------------------------------------------------- study files


def written_in(spec: str) -> dict[str, Any]:
    """A study file as it is written; empty for a study that was not made from one."""
    try:
        content = yaml.safe_load(spec)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise Damaged("a study file that is not YAML") from None
    return content if isinstance(content, dict) else {}


@lru_cache(maxsize=256)
def budget_in(spec: str) -> StudyBudget | None:
    """The budget of a study file; None for a study that was not made from one."""
    budget = written_in(spec).get("budget")
    try:
        return None if budget is None else StudyBudget.model_validate(budget)
    except ValidationError:
        raise Damaged("a study file without a valid budget") from None


# --------------------------------------------------------------------- columns that belong together


def unlike(params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> str | None:
    """A parameter whose distribution can never have drawn it.

    One outside the bounds may have been asked for.
    """
    for name, drawn_from in distributions.items():
        if name not in params:
            continue
        value = params[name]
        if not _may_be_drawn(value, drawn_from):
            kind = type(drawn_from).__name__
            return wrong(value, f"a value of {kind}", name[:40])
    return None


def miscounted(values: Sequence[float] | None, directions: Sequence[str]) -> str | None:
    """Values of objectives that are more or fewer than the study's directions."""
    if values is None or len(values) == len(directions):
        return None
    return wrong(list(values), f"a JSON array of {len(directions)}")


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
