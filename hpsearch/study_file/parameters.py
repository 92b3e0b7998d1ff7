"""The parameters of a search space: numbers on a scale or a grid, and choices."""

import math
from collections.abc import Hashable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

from hpsearch.study_file.expressions.meaning import Condition
from hpsearch.study_file.types import (
    EXACT,
    Bound,
    Choices,
    Value,
    WholeBound,
    is_number,
    is_whole_number,
    key_of,
    same,
)
from hpsearch.study_file.validation import Mistake, Model, shown
from trials.settings import as_scalar, in_full, some

Confidence: TypeAlias = Literal["low", "medium", "high"]
"""The confidence that a parameter's good values are near its prior."""


def grid_point(low: float, step: float, index: float) -> float:
    """The point with an index on a grid, as people write it: 0.1 + 2 * 0.1 is 0.3 and not
    0.30000000000000004. A whole number where the grid is of whole numbers."""
    exact = Fraction(str(low)) + round(index) * Fraction(str(step))
    return type(low)(exact)


class _Numeric(Model):
    """Bounds, scale and grid of a number; both bounds belong to the range."""

    _step_of_one: ClassVar[int | None] = None
    """The step that every value has anyway and that goes with any scale: 1 for whole numbers."""

    low: Bound
    """The smallest value."""
    high: Bound
    """The largest value."""
    log: bool = False
    """True for values that are drawn on a logarithmic scale."""
    step: float | None = None
    """Values are low plus a multiple of this."""
    when: Condition | None = None
    """Active only when this is true: each of these parameters has one of these values, or text such
    as "optimizer == 'adam' and width > 64"."""
    prior: Bound | None = None
    """A value that is believed to be good: the search begins near it."""
    confidence: Confidence = "medium"
    """The confidence that other good values are near the prior."""
    was: Value = None
    """The value that trials count with which were trained before the parameter was added."""

    @property
    def has_prior(self) -> bool:
        return self.prior is not None

    @property
    def size(self) -> float:
        """The number of its values; infinite without a grid."""
        return math.inf if self._grid is None else round((self.high - self.low) / self._grid) + 1

    def index_of(self, value: float) -> float:
        """The index of a value on the grid, from 0; without a grid the value itself."""
        return value if self._grid is None else round((value - self.low) / self._grid)

    def value_at(self, index: float) -> float:
        """The value with an index: the inverse of `index_of`."""
        return index if self._grid is None else grid_point(self.low, self._grid, index)

    @property
    def _grid(self) -> float | None:
        """The distance of neighbours; any for a single value."""
        return self.step or (1.0 if self.low == self.high else None)

    def problem_with(self, value: Any) -> str | None:
        """The reason why the parameter cannot have a value, as half a sentence; None if it can."""
        if not is_number(value):
            return f"must be a number, not {shown(value)}"
        return self._outside(value)

    def at(self, fraction: float) -> float:
        """The value at a fraction of the parameter's scale, from 0 to below 1."""
        low, high = self.low, self.high
        if self.log:
            half = 0.5 * (self._step_of_one or 0)
            number = math.exp(
                math.log(low - half) + fraction * math.log((high + half) / (low - half))
            )
        elif self.step is not None:
            number = self.value_at(int(fraction * self.size))
        else:
            number = low + fraction * (high - low)
        number = min(max(number, low), high)
        return round(number) if self._step_of_one else number

    def mistakes(self) -> Iterator[Mistake]:
        wrong = list(self._range_mistakes())
        yield from wrong
        if wrong or self.prior is None:
            return
        problem = self.problem_with(self.prior)
        if problem is not None:
            yield "prior", problem

    def _range_mistakes(self) -> Iterator[Mistake]:
        if self.low > self.high:
            yield "low", f"{self.low} is above high ({self.high}); swap them"
        if self.log and self.low <= 0:
            what = f"a logarithmic scale needs bounds above 0, not {self.low}"
            yield "low", f"{what}; raise it or remove log"
        if self.step is None or self.step == self._step_of_one:
            return
        if self.log:
            yield "step", "a logarithmic scale has no step; remove log or step"
        elif self.step <= 0:
            yield "step", f"must be above 0, not {self.step}"
        elif self.low < self.high:
            yield from self._grid_mistakes(self.step)

    def _grid_mistakes(self, step: float) -> Iterator[Mistake]:
        width = Fraction(str(self.high)) - Fraction(str(self.low))
        steps = width / Fraction(str(step))
        if steps > EXACT:
            yield "step", f"{step} is too small for these bounds; raise or remove it"
        elif steps.denominator != 1:
            what = f"{step} does not divide high - low ({in_full(float(width))})"
            yield "step", f"{what}; change high, low or step"

    def _outside(self, value: float) -> str | None:
        if not self.low <= value <= self.high:
            return f"must be from {self.low} to {self.high}, not {value}"
        if self.step is None or self.log:
            return None
        steps = (value - self.low) / self.step
        if abs(steps - round(steps)) < 1e-8:  # as Optuna's FloatDistribution judges it
            return None
        return f"must be {self.low} plus a multiple of {self.step}, not {value}"


class FloatParameter(_Numeric):
    """A number, on a linear or logarithmic scale, or on a grid of `step`."""

    type: Literal["float"]
    """A number."""


class IntParameter(_Numeric):
    """A whole number."""

    _step_of_one: ClassVar[int | None] = 1
    type: Literal["int"]
    """A whole number."""
    low: WholeBound
    high: WholeBound
    step: int = 1
    prior: WholeBound | None = None

    def problem_with(self, value: Any) -> str | None:
        if not is_whole_number(value):
            return f"must be a whole number, not {shown(value)}"
        return self._outside(value)


class CategoricalParameter(Model):
    """One of a few values without an order."""

    type: Literal["categorical"]
    """One of a few values."""
    choices: Choices
    """The values: numbers, text, true, false, null, or lists or mappings of these."""
    when: Condition | None = None
    """Active only when this is true: each of these parameters has one of these values, or text such
    as "optimizer == 'adam' and width > 64"."""
    prior: Value = None
    """The choice that is believed to be good: the search begins with it."""
    confidence: Confidence = "medium"
    """The confidence in the prior, against all other choices."""
    was: Value = None
    """The value that trials count with which were trained before the parameter was added."""

    @property
    def has_prior(self) -> bool:
        """True if a choice is stated to be good, which may be null."""
        return self.prior is not None or (None in self.choices and "prior" in self.model_fields_set)

    @property
    def size(self) -> float:
        return len(self.choices)

    @cached_property
    def _indices(self) -> dict[Hashable, int]:
        return {key_of(choice): index for index, choice in enumerate(self.choices)}

    def index_of(self, value: Any) -> int:
        return self._indices[key_of(value)]

    def value_at(self, index: int) -> Any:
        return self.choices[index]

    def problem_with(self, value: Any) -> str | None:
        if key_of(value) in self._indices:
            return None
        return f"must be one of {some(map(shown, self.choices))}, not {shown(value)}"

    def at(self, fraction: float) -> Any:
        """The value at a fraction from 0 to below 1, of which all choices have equal parts."""
        return self.choices[int(fraction * len(self.choices))]

    def mistakes(self) -> Iterator[Mistake]:
        """No choices, a prior that is not among them, or equal ones: to Optuna true is 1, and a
        list is its JSON text."""
        if not self.choices:
            yield "choices", "is empty; give at least one value"
            return
        first: dict[Any, Any] = {}
        for i, choice in enumerate(self.choices):
            keys = [key_of(choice), as_scalar(choice)]
            for equal in [first[key] for key in keys if key in first][:1]:
                is_same = same(equal, choice)
                why = "is listed twice" if is_same else f"counts as equal to {shown(equal)}"
                yield f"choices[{i}]", f"{shown(choice)} {why}; remove one"
            for key in keys:
                first.setdefault(key, choice)
        if self.prior is not None and (problem := self.problem_with(self.prior)):
            yield "prior", problem


Parameter: TypeAlias = FloatParameter | IntParameter | CategoricalParameter
