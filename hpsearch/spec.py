"""The study file as frozen objects: what is searched, for what, with which budget and on what.

The models refuse a value that is wrong by itself. What takes two parts of a file to see, or the task's own knowledge,
is found by `spec_checks`; reading a file and telling where each mistake stands is the work of `spec_file`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from hpsearch.spec_types import (
    EXACT,
    Bound,
    Choices,
    Condition,
    Count,
    Duration,
    Gpus,
    Positive,
    StudyName,
    WholeBound,
    Workers,
    same,
    shown,
)
from trials.contract import Unit

Mistake: TypeAlias = tuple[str, str]
"""The key it is about, relative to the model (empty for the model as a whole), and what is wrong with it."""

MOST_REPORTS = 10_000
"""Reports a trial may give: each one is an evaluation and a row in the database."""


class Model(BaseModel):
    """Base of all parts of a study file: frozen; unknown keys, loose types, nan and infinity are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="after")
    def _refuse_mistakes(self) -> Any:
        if found := list(self.mistakes()):
            text = "; ".join(f"{key}: {what}" for key, what in found)
            raise PydanticCustomError("mistakes", "{text}", {"text": text, "mistakes": found})
        return self

    def mistakes(self) -> Iterator[Mistake]:
        """What is wrong between fields that are each of the right type."""
        yield from ()


# ---------------------------------------------------------------------------------------------------- space


class _Numeric(Model):
    """Bounds, scale and grid of a number; both bounds belong to the range."""

    _step_of_one: ClassVar[int | None] = None
    """The step that every value has anyway and that goes with any scale: 1 for whole numbers."""

    low: Bound
    high: Bound
    log: bool = False
    step: float | None = None
    when: Condition | None = None
    """Active only when each of these parameters is active with one of the values given here."""

    def mistakes(self) -> Iterator[Mistake]:
        """Bounds, scale and step that do not go together."""
        if self.low > self.high:
            yield "low", f"{self.low} is above high ({self.high}); swap them"
        if self.log and self.low <= 0:
            yield "low", f"a logarithmic scale needs bounds above 0, and this is {self.low}; raise it or drop log"
        if self.step is None or self.step == self._step_of_one:
            return
        if self.log:
            yield "step", "a logarithmic scale takes no step; drop log or step"
        elif self.step <= 0:
            yield "step", f"must be above 0, not {self.step}"
        elif self.low < self.high:
            yield from self._grid_mistakes(_exact(self.high) - _exact(self.low), _exact(self.step))

    def _grid_mistakes(self, width: Decimal, step: Decimal) -> Iterator[Mistake]:
        if width / step > EXACT:
            yield "step", f"{self.step} is too small for bounds that lie {float(width):g} apart; raise it or drop it"
        elif width % step:
            yield "step", f"{self.step} does not divide high - low ({float(width):g}); change high, low or step"

    def _outside(self, value: float) -> str | None:
        if not self.low <= value <= self.high:
            return f"must be from {self.low} to {self.high}, not {value}"
        if self.step is None or self.log:
            return None
        steps = (value - self.low) / self.step
        on_grid = abs(steps - round(steps)) < 1e-8  # as Optuna's FloatDistribution judges it
        return None if on_grid else f"must be {self.low} plus a multiple of {self.step}, not {value}"


def _exact(value: float) -> Decimal:
    return Decimal(str(value))


class FloatParameter(_Numeric):
    """A number, on a linear or logarithmic scale, or on a grid of `step`."""

    type: Literal["float"]

    def problem_with(self, value: Any) -> str | None:
        """Why the parameter can never have this value, as half a sentence; None if it can."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"must be a number, not {shown(value)}"
        return self._outside(value)


class IntParameter(_Numeric):
    """A whole number."""

    _step_of_one: ClassVar[int | None] = 1
    type: Literal["int"]
    low: WholeBound
    high: WholeBound
    step: int = 1

    def problem_with(self, value: Any) -> str | None:
        """Why the parameter can never have this value, as half a sentence; None if it can."""
        if isinstance(value, bool) or not isinstance(value, int):
            return f"must be a whole number, not {shown(value)}"
        return self._outside(value)


class CategoricalParameter(Model):
    """One of a few values without an order."""

    type: Literal["categorical"]
    choices: Choices
    when: Condition | None = None
    """Active only when each of these parameters is active with one of the values given here."""

    def mistakes(self) -> Iterator[Mistake]:
        """No choices, or choices that are equal (to Optuna true is 1 and 2.0 is 2)."""
        if not self.choices:
            yield "choices", "is empty; give at least one value"
        seen: dict[Any, Any] = {}
        for i, choice in enumerate(self.choices):
            first = seen.setdefault(choice, choice)
            if i >= len(seen):
                why = "stands there twice" if same(first, choice) else f"counts as equal to {shown(first)}"
                yield f"choices[{i}]", f"{shown(choice)} {why}; remove one"

    def problem_with(self, value: Any) -> str | None:
        """Why the parameter can never have this value, as half a sentence; None if it can."""
        if any(same(value, choice) for choice in self.choices):
            return None
        return f"must be one of {', '.join(map(shown, self.choices))}, not {shown(value)}"


Parameter: TypeAlias = FloatParameter | IntParameter | CategoricalParameter

# ------------------------------------------------------------------------------------- objective and budget


class Objective(Model):
    """What makes one trial better than another."""

    metric: str = Field(examples=["accuracy"])
    direction: Literal["minimize", "maximize"] = Field(examples=["maximize"])

    @property
    def sign(self) -> float:
        """What values are multiplied by so that less is better."""
        return -1.0 if self.direction == "maximize" else 1.0


class Limit(Model):
    """What a reported metric must keep to for a configuration to be of use; the bounds themselves are allowed."""

    min: Bound | None = None
    max: Bound | None = None

    def mistakes(self) -> Iterator[Mistake]:
        """No bound at all, or bounds that leave nothing between them."""
        if self.min is None and self.max is None:
            yield "", "bounds nothing; give max, min or both"
        if self.min is not None and self.max is not None and self.min > self.max:
            yield "min", f"{self.min:g} is above max ({self.max:g}); swap them"


class PerTrial(Model):
    """How far one trial trains: exactly one of steps, epochs, samples, tokens and seconds."""

    steps: Count | None = None
    epochs: Positive | None = None
    samples: Count | None = None
    tokens: Count | None = None
    seconds: Positive | None = None
    report_every: Positive | None = None
    """In the same unit; how often a trial measures itself."""
    time_limit_s: Duration | None = Field(default=None, alias="time_limit")
    """Seconds after which an attempt fails as a timeout."""

    def mistakes(self) -> Iterator[Mistake]:
        """No unit or several, and a report grid that does not suit it."""
        given = [unit.value for unit in Unit if getattr(self, unit.value) is not None]
        if not given:
            yield "", "sets no length; give one of steps, epochs, samples, tokens or seconds"
        for name in given[1:]:
            yield name, f"stands beside {given[0]}; a trial is measured in one unit, keep one"
        if len(given) != 1:
            return
        every = self.report_interval
        if every > self.total:
            yield "report_every", f"{every} is more than the whole trial ({self.total:g} {self.unit.value}); lower it"
        elif self.whole and every != int(every):
            yield "report_every", f"must be a whole number of {self.unit.value}, not {every}"
        elif self.total / every > MOST_REPORTS:
            count = f"{self.total / every:.0f} reports a trial are more than {MOST_REPORTS}"
            yield ("report_every" if self.report_every else given[0]), f"{count}; raise report_every"

    @property
    def unit(self) -> Unit:
        """What the trial budget counts."""
        return next(unit for unit in Unit if getattr(self, unit.value) is not None)

    @property
    def total(self) -> float:
        """The full trial budget, in `unit`."""
        return float(getattr(self, self.unit.value))

    @property
    def whole(self) -> bool:
        """Whether only whole numbers of the unit exist."""
        return self.unit in (Unit.STEPS, Unit.SAMPLES, Unit.TOKENS)

    @property
    def report_interval(self) -> float:
        """How much a trial trains between reports: `report_every`, or 1 epoch, or a tenth of the total."""
        if self.report_every is not None:
            return self.report_every
        if self.unit is Unit.EPOCHS:
            return min(1.0, self.total)
        return float(math.ceil(self.total / 10)) if self.whole else self.total / 10


class StudyBudget(Model):
    """What the whole study may spend: at least one limit, and what each trial may train."""

    trials: Count | None = None
    gpu_hours: Positive | None = None
    cost: Positive | None = None
    """Money, at `cost_per_gpu_hour`."""
    cost_per_gpu_hour: Positive | None = None
    wall_clock_s: Duration | None = Field(default=None, alias="wall_clock")
    """Seconds that drivers work on the study, over all of them."""
    target: float | None = None
    """The study stops at the first trial whose value is this good."""
    per_trial: PerTrial = Field(examples=["{epochs: 3}"])

    def mistakes(self) -> Iterator[Mistake]:
        """No limit at all, or one on money without a price."""
        if self.trials is None and self.gpu_hours is None and self.cost is None and self.wall_clock_s is None:
            yield "", "sets no limit to the study; give trials, gpu_hours or wall_clock"
        if self.cost is not None and self.cost_per_gpu_hour is None:
            yield "cost", "needs a price to count with; add cost_per_gpu_hour"


# --------------------------------------------------------------------------------------- search and resources


class Method(Model):
    """A sampler or pruner by name, with its arguments."""

    kind: str
    arguments: dict[str, Any] = {}


def split_method(value: Any) -> Any:
    """`tpe` and `{kind: tpe, multivariate: true}` as a method's fields."""
    if isinstance(value, str):
        return {"kind": value}
    if not isinstance(value, dict) or "kind" not in value:
        return value if isinstance(value, Method) else {"kind": value}
    return {"kind": value["kind"], "arguments": {k: v for k, v in value.items() if k != "kind"}}


NamedMethod = Annotated[Method, BeforeValidator(split_method)]


class Confirm(Model):
    """Repeat the best trials with fresh seeds at the end, to tell luck from merit."""

    top: Count = Field(examples=["3"])
    """How many of the best trials."""
    seeds: Count = Field(examples=["3"])
    """How many runs of each."""


class Search(Model):
    """How configurations are proposed and when weak ones are dropped; names and arguments as in Optuna."""

    sampler: NamedMethod = Method(kind="curve_gp")
    pruner: NamedMethod = Method(kind="promotion")
    confirm: Confirm | None = None


class Resources(Model):
    """What trials run on, and how long each part of a study is waited for."""

    workers: Workers = "auto"
    """How many trials run side by side; auto fills the machine or cluster."""
    cpu: Positive = 1.0
    """Cores for each worker."""
    gpu: Gpus = "auto"
    """GPUs, or the share of one, for each worker; auto is one where there are any."""
    retries: Annotated[int, Field(ge=0, le=EXACT)] = 2
    """Attempts lost to dead workers before a trial fails."""
    report_deadline_s: Duration = Field(default=1800.0, alias="report_deadline")
    """A trial that does not report for so many seconds is treated as hung."""
    worker_timeout_s: Duration = Field(default=120.0, alias="worker_timeout")
    """A worker that gives no sign of life for so many seconds is killed and replaced."""
    lease_s: Duration = Field(default=45.0, alias="lease")
    """A driver that does not renew its hold on the study for so many seconds is taken for dead."""
    database_patience_s: Duration = Field(default=300.0, alias="database_patience")
    """A database that does not answer is waited for so many seconds; then the driver ends, resumable."""
    disk_patience_s: Duration = Field(default=300.0, alias="disk_patience")
    """A disk that takes no checkpoint is waited for so many seconds; then the study is interrupted, resumable."""
    stop_grace_s: Duration = Field(default=60.0, alias="stop_grace")
    """An interrupted study waits so many seconds for its workers to save."""


# ---------------------------------------------------------------------------------------------------- study


class StudySpec(Model):
    """A whole study file."""

    study: StudyName = Field(examples=["my-study"])
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    task: dict[str, Any] = Field(examples=["{kind: text_classification, train: train.csv, ...}"])
    """As written; `kind` says which task the rest is for."""
    settings: dict[str, Any] = {}
    """Fixed for every trial."""
    space: dict[str, Annotated[Parameter, Field(discriminator="type")]] = Field(
        examples=["{learning_rate: {type: float, low: 1.0e-5, high: 1.0e-3, log: true}}"]
    )
    objectives: tuple[Objective, ...]
    """In the file under `objective`: one, or a list of them."""
    constraints: dict[str, Limit] = {}
    """By metric, what configurations must keep to."""
    budget: StudyBudget = Field(examples=["{trials: 20, per_trial: {epochs: 3}}"])
    search: Search = Search()
    resources: Resources = Resources()
    enqueue: list[dict[str, Any]] = []
    """Known-good configurations, tried first."""
    checkpoints: str | None = None
    """The folder for checkpoints."""
    base: Path
    """The folder of the study file; relative paths in the file start there. Not in the file."""
    text: str
    """The file's text. Not in the file."""

    @property
    def objective(self) -> Objective:
        """The first objective; most studies have no other."""
        return self.objectives[0]
