"""The base of the models of a study file: strict, and with hints in their errors."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    WrapValidator,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from trials.contract import Problem
from trials.descriptions.yaml_source import place
from trials.settings import as_scalar, nearest

Mistake: TypeAlias = tuple[str, str]
"""A key, relative to the model (empty for the model as a whole), and the mistake in it."""

PARAMETER_TYPES = ("float", "int", "categorical")
_MAPPING = "Input should be a mapping (key: value)"
_INSTEAD = {
    "model_type": _MAPPING,
    "dict_type": _MAPPING,
    "model_attributes_type": f"{_MAPPING} such as {{type: float, low: 0.1, high: 1.0}}",
    "tuple_type": "Input should be a valid list",
    "union_tag_not_found": "has no type; add type: float, type: int or type: categorical",
}
"""Texts in place of pydantic's that name what YAML does not have, by its type of error."""


class Model(BaseModel):
    """Base of all parts of a study file: frozen and strict.

    Unknown keys, values that would have to be converted, nan and infinity are refused. The text
    under a field also describes it in the JSON Schema of the study file (`schema`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    went: ClassVar[Mapping[str, str]] = {}  # keys of earlier versions, and what to do without them

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            model = handler(value)
        except ValidationError as error:
            details = error.errors(include_url=False)
            lines = [_line(each["loc"], _text(each, cls), each["input"]) for each in details]
        else:
            mistakes = model.mistakes()
            lines = [_line((key,) if key else (), what, value) for key, what in mistakes]
            if not lines:
                return model
        raise ValidationError.from_exception_data(cls.__name__, lines)

    def mistakes(self) -> Iterator[Mistake]:
        """Mistakes between fields whose types are right."""
        yield from ()


def problems_of(error: ValidationError, where: str = "", *, skip: int = 0) -> list[Problem]:
    """Every mistake of a validation of the value at `where`, with its dotted place. `skip` leading
    parts of pydantic's places are not in the file, such as a union's tag."""
    problems: list[Problem] = []
    for details in error.errors(include_url=False):
        here = where
        for key in details["loc"][skip:]:
            here = place(here, key)
        if details["type"] == "union_tag_invalid":
            here = place(here, "type")
        problems.append(Problem(here, _text(details)))
    return problems


def refusal(text: str) -> PydanticCustomError:
    """An error of a validator in its own words."""
    return PydanticCustomError("own", "{text}", {"text": text})


def worded(text: str) -> WrapValidator:
    """A validator with one text for all that a type accepts: pydantic names each alternative."""

    def check(value: Any, handler: Any) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise refusal(f"{text}, not {shown(value)}") from None

    return WrapValidator(check)


def shown(value: Any) -> str:
    """A value for an error text: as a study file writes it, shortened where it is long."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        text = as_scalar(value) if isinstance(value, list | dict) else repr(value)
    except TypeError:  # it holds what JSON does not have
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python prints
        text = "a number of thousands of digits"
    if len(text) <= 60:
        return text
    return text[:57] + "..."


def _line(loc: tuple[int | str, ...], text: str, value: Any) -> InitErrorDetails:
    return InitErrorDetails(type=refusal(text), loc=loc, input=value)


def _text(details: ErrorDetails, model: type[Model] | None = None) -> str:
    """One error in words, about a field of the model, if it is known."""
    kind, value = details["type"], details["input"]
    if kind in ("missing", "extra_forbidden"):
        assert model is not None, "each model words its own errors"
        return _key_text(kind, str(details["loc"][-1]), model)
    if kind == "union_tag_invalid":
        tag = details["ctx"]["tag"]
        return f"{shown(tag)} is not a type of parameter; {nearest(tag, PARAMETER_TYPES)}"
    text = _INSTEAD.get(kind, details["msg"])
    known = text.removeprefix("Input ")
    return text if known == text else f"{known}, not {shown(value)}{_hint(kind, value)}"


def _key_text(kind: str, key: str, model: type[Model]) -> str:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    if kind == "extra_forbidden":
        return f"unknown key; {model.went.get(key) or nearest(key, fields)}"
    examples = [f"{key}: {example}" for example in fields[key].examples or ()]
    return f"is missing; add {' or '.join(examples) or f'{key}: and its value'}"


def _hint(kind: str, value: Any) -> str:
    if kind == "string_type":
        return "; put it in quotes"
    if kind not in ("int_type", "float_type") or not isinstance(value, str):
        return ""
    try:
        number = float(value)
    except ValueError:
        return ""
    if "e" not in value.lower():
        return "; write it without quotes"
    better = f"{number:.0f}" if kind == "int_type" else _with_point(number)
    return f" (YAML reads {value} as text; write {better})"


def _with_point(number: float) -> str:
    """A number as YAML reads it: with a point, and a sign in the exponent."""
    digits, exponent, power = repr(number).partition("e")
    return f"{float(digits)}e{int(power):+d}" if exponent else repr(number)
