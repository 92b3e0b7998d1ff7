"""The setting `compile`: `torch.compile` for the loss of a run, or captured steps
(`trials.loop.captured`).

If the compiler is missing or fails, the step is done again without it, and so are all after it.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from trials.devices import processes
from trials.devices.memory import is_out_of_memory
from trials.foreign import line_of
from trials.settings import Settings

log = logging.getLogger(__name__)

T = TypeVar("T")
Loss = Callable[[Any], torch.Tensor]

AUTO, ALWAYS = "auto", "always"
CAPTURING = {"cuda"}
"""The types of devices on which steps are captured."""


def is_captured(settings: Settings, device: torch.device) -> bool:
    if settings.compile != AUTO or settings.gradient_checkpointing:
        return False
    return device.type in CAPTURING and processes.current().size == 1


class CompilableLoss:
    """The loss of a run's micro-batches, plain or compiled. `processes`: the number of ranks.
    Several never compile: if the compiler failed on one rank, the others would wait for gradients
    that do not come."""

    def __init__(self, setting: str, loss_sum: Loss, processes: int = 1) -> None:
        self._setting = setting
        self._plain = loss_sum
        self._compiled: Loss | None = None
        is_wanted = setting == ALWAYS
        self.compiled = is_wanted and processes == 1
        if is_wanted and processes > 1:
            what = "compile: %s has no effect where several processes train one trial"
            log.warning(what, setting)

    def sum(self, batch: Any) -> torch.Tensor:
        if not self.compiled:
            return self._plain(batch)
        if self._compiled is None:
            # Without `dynamic` each new size of batch may be compiled again.
            self._compiled = torch.compile(self._plain, dynamic=True)
        return self._compiled(batch)

    def with_fallback(self, work: Callable[[], T]) -> T:
        """The result of `work`, which is done again without the compiler if that fails. Raises
        RuntimeError if memory ran out, or `work` fails without the compiler too."""
        try:
            return work()
        except RuntimeError as error:  # what torch's compilers raise, or wrap other errors in
            if not self.compiled or is_out_of_memory(error):
                raise
            what = "torch.compile failed; the trial continues without it: %s"
            log.warning(what, line_of(error))
        # After the except block the error and the tensors of its frames are gone.
        self.disable()
        return work()

    def disable(self) -> None:
        self.compiled = False
        self.close()

    def metrics(self) -> dict[str, float]:
        """The metric `compiled`, 1 or 0, if the setting is always."""
        return {"compiled": float(self.compiled)} if self._setting == ALWAYS else {}

    def close(self) -> None:
        """Release the compiled code, which torch would keep, with the model."""
        if self._compiled is not None:
            self._compiled = None
            torch.compiler.reset()
