"""`torch.compile` for the loss, if the remaining budget makes it worthwhile. No trial fails because
of it.

Compiling takes time at once and saves a share of every step after it. `auto` measures the first
steps of an attempt and decides once, by `verdict`. A compiler that is missing or fails costs no
more than the step in which it fails: that step is done again without it, and so are all after it.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from trials.devices.memory import is_out_of_memory

log = logging.getLogger(__name__)

T = TypeVar("T")
Loss = Callable[[Any], torch.Tensor]

COMPILE_SECONDS = {"cpu": 100.0, "cuda": 60.0}
"""What compiling is expected to cost, by the kind of device: a high estimate, because it is spent
for certain. Measured on two CPU cores: 35 s for a trivial function, 31 to 64 s for a BERT of one
layer, near 100 s while other programs use the cores too. A GPU's kernels take tens of seconds; that
figure is assumed. On other devices `auto` does not compile."""
SPEED_UP = 0.1
"""The share of a step's time that compiling is expected to save: an assumed, low estimate, because
the saving is not known before it is paid for, and a step's data, optimizer and evaluations are not
compiled."""


class Compile(enum.StrEnum):
    """Values of the setting `compile`."""

    NEVER = "never"
    AUTO = "auto"
    ALWAYS = "always"


@dataclass(frozen=True)
class CompileVerdict:
    """Whether to compile, and why, as half a sentence."""

    compile: bool
    why: str


@dataclass(frozen=True)
class Moment:
    """Where a run was at a moment when the device had no work left."""

    step: int
    """Optimizer steps taken."""
    seconds: float
    """Trained so far."""
    used: float
    """The share of the full budget."""


def verdict(step_seconds: float, steps_left: float, device: str) -> CompileVerdict:
    """Whether compiling pays: whether the steps that are left save more time than it costs.

    Args:
        step_seconds: What a step takes without it, measured after the first steps, which are
            slower.
        steps_left: Until the full budget is used.
        device: The kind of device, such as cpu or cuda.
    """
    cost = COMPILE_SECONDS.get(device)
    if cost is None:
        return CompileVerdict(False, f"what compiling costs on {device} is not known")
    saved = SPEED_UP * step_seconds * steps_left
    facts = f"{steps_left:.0f} steps of {step_seconds:.3g} s would save some {saved:.3g} s"
    if saved > cost:
        return CompileVerdict(True, f"{facts}, and compiling costs some {cost:.3g} s")
    return CompileVerdict(False, f"{facts}, less than the {cost:.3g} s that compiling costs")


def verdict_between(warm: Moment, now: Moment, device: str) -> CompileVerdict:
    """The verdict from two moments of a run: the end of its warm-up, and some steps later."""
    steps = now.step - warm.step
    if now.used <= warm.used:
        return CompileVerdict(False, "no budget was used in the steps that were measured")
    used = now.used - warm.used
    left = max(1.0 - now.used, 0.0)
    steps_left = left * steps / used
    seconds = now.seconds - warm.seconds
    return verdict(seconds / steps, steps_left, device)


class CompilableLoss:
    """The loss of a run's micro-batches, as it is or compiled.

    Attributes:
        compiled: Whether it is compiled; None while that is not decided.

    Args:
        setting: A value of the setting `compile`.
        loss_sum: The loss as it is.
        device: Where the model is.
        processes: How many train together. With several it is never compiled: if the compiler
            failed on one rank, the others would wait for gradients that do not come.
    """

    def __init__(
        self, setting: str, loss_sum: Loss, device: torch.device, processes: int = 1
    ) -> None:
        self._setting = Compile(setting)
        is_asked_for = self._setting is not Compile.NEVER
        self._open = is_asked_for and processes == 1
        self._plain = loss_sum
        self._device = device
        self._compiled: Loss | None = None
        self._warm: Moment | None = None
        self.compiled: bool | None = None
        if not self._open or self._setting is Compile.ALWAYS:
            self.compiled = self._open
        if processes > 1 and is_asked_for:
            what = "compile: %s has no effect where several processes train one trial"
            log.warning(what, self._setting.value)

    def sum(self, batch: Any) -> torch.Tensor:
        """The sum of the losses of all targets of a micro-batch: a scalar with gradients."""
        if not self.compiled:
            return self._plain(batch)
        if self._compiled is None:
            # For any size of batch at once: without `dynamic` each new one may be compiled again.
            self._compiled = torch.compile(self._plain, dynamic=True)
        return self._compiled(batch)

    def attempt(self, work: Callable[[], T]) -> T:
        """What `work` returns; where it fails while compiled, it is done again without the
        compiler.

        Raises:
            RuntimeError: Memory ran out, or `work` fails without the compiler too.
        """
        try:
            return work()
        except RuntimeError as error:  # what torch's compilers raise, or wrap other errors in
            if not self.compiled or is_out_of_memory(error):
                raise
            what = "torch.compile failed; the trial continues without it: %s"
            log.warning(what, _first_line(error))
        # Only here, after the except block, are the error and the tensors of its frames gone.
        self.do_without()
        return work()

    def consider(self, step: int, seconds: float, used: float) -> None:
        """Under `auto`, decide when this is called for the second time: the steps before the first
        are warm-up. The arguments are those of a `Moment`."""
        if self.compiled is not None:
            return
        now = Moment(step, seconds, used)
        if self._warm is None:
            self._warm = now
            return
        found = verdict_between(self._warm, now, self._device.type)
        self.compiled = found.compile
        decision = "compiling" if found.compile else "not compiling"
        log.info("%s at step %d: %s", decision, step, found.why)

    def do_without(self) -> None:
        """Do not compile, or no longer."""
        self.compiled = False
        self.close()

    def read(self) -> dict[str, float]:
        """The metric `compiled`, 1 or 0; none where the setting is never."""
        if self._setting is Compile.NEVER:
            return {}
        is_compiled = bool(self.compiled)
        return {"compiled": float(is_compiled)}

    def state_dict(self) -> dict[str, bool | None]:
        """What was decided."""
        return {"compiled": self.compiled}

    def load_state_dict(self, state: dict[str, bool | None]) -> None:
        """Continue with what was decided; if nothing was, the measurement starts again."""
        if self._open:
            self.compiled = state["compiled"]

    def close(self) -> None:
        """Release what was compiled.

        torch keeps it, with the model, and stops compiling once it keeps too much.
        """
        if self._compiled is not None:
            self._compiled = None
            torch.compiler.reset()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
