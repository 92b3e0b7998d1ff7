"""The optimizer steps at which a trial reports, for libraries that count steps and epochs."""

import math
from dataclasses import dataclass

from trials.contract import Unit
from trials.tasks.function.trial import FunctionTrial

SLACK = 1e-9  # 0.7 epochs of 10 steps are 7 steps, which floats may make a little more


@dataclass(frozen=True, slots=True)
class Pace:
    """The budget of a trial in optimizer steps. Raises ValueError if the budget cannot be counted
    in steps. `epoch_steps`: optimizer steps in an epoch; None if unknown. `step_samples`: samples
    in an optimizer step, by the batch size."""

    trial: FunctionTrial
    epoch_steps: int | None
    step_samples: int

    def __post_init__(self) -> None:
        unit = self.trial.unit
        if unit in (Unit.TOKENS, Unit.SECONDS):
            what = f"per_trial counts {unit.value}, but a schedule needs the number of steps"
            raise ValueError(f"{what}; state per_trial in steps, epochs or samples")
        if unit is Unit.EPOCHS and self.epoch_steps is None:
            what = "per_trial counts epochs, but the length of the training data is not known"
            raise ValueError(f"{what}; state per_trial in steps or samples")

    @property
    def total_steps(self) -> int:
        return self.step_at(self.trial.budget)

    def levels(self) -> dict[int, float]:
        """The highest level that an optimizer step reaches, for each step that reaches one."""
        return {self.step_at(level): level for level in self.trial.report_at}

    def step_at(self, level: float) -> int:
        return max(math.ceil(level * self._steps_a_unit * (1 - SLACK)), 1)

    def resource_after(self, step: int) -> float:
        return step / self._steps_a_unit

    def require(self, steps: int, *, advice: str) -> None:
        """Make sure that a library trains for the full budget, which schedules depend on. Raises
        ValueError if it trains for another number of steps."""
        if steps == self.total_steps:
            return
        budget = f"{self.trial.budget:g} {self.trial.unit.value}"
        if self.trial.unit is not Unit.STEPS:
            budget += f", which are {self.total_steps} steps"
        what = f"the training is set to {steps} steps, but the trial's full budget is {budget}"
        raise ValueError(f"{what}; {advice}")

    @property
    def _steps_a_unit(self) -> float:
        match self.trial.unit:
            case Unit.EPOCHS:
                assert self.epoch_steps is not None
                return self.epoch_steps
            case Unit.SAMPLES:
                return 1 / self.step_samples
            case _:
                return 1
