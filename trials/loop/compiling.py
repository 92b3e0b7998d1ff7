"""`torch.compile` for the loss of a run.

If the compiler is missing or fails, the step is done again without it, and so are all after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from trials.devices.memory import is_out_of_memory
from trials.foreign import line_of

log = logging.getLogger(__name__)

T = TypeVar("T")
Loss = Callable[[Any], torch.Tensor]

NEVER = "never"


class CompilableLoss:
    """The loss of a run's micro-batches, plain or compiled.

    Attributes:
        compiled: Whether it is compiled.

    Args:
        setting: The setting `compile`.
        loss_sum: The plain loss.
        processes: The number of ranks. Several never compile: if the compiler failed on one rank,
            the others would wait for gradients that do not come.
    """

    def __init__(self, setting: str, loss_sum: Loss, processes: int = 1) -> None:
        self._setting = setting
        self._plain = loss_sum
        self._compiled: Loss | None = None
        is_wanted = setting != NEVER
        self.compiled = is_wanted and processes == 1
        if is_wanted and processes > 1:
            what = "compile: %s has no effect where several processes train one trial"
            log.warning(what, setting)

    def sum(self, batch: Any) -> torch.Tensor:
        """The sum of the losses of all targets of a micro-batch: a scalar with gradients."""
        if not self.compiled:
            return self._plain(batch)
        if self._compiled is None:
            # Without `dynamic` each new size of batch may be compiled again.
            self._compiled = torch.compile(self._plain, dynamic=True)
        return self._compiled(batch)

    def attempt(self, work: Callable[[], T]) -> T:
        """The result of `work`, which is done again without the compiler if that fails.

        Raises:
            RuntimeError: Memory ran out, or `work` fails without the compiler too.
        """
        try:
            return work()
        except RuntimeError as error:  # what torch's compilers raise, or wrap other errors in
            if not self.compiled or is_out_of_memory(error):
                raise
            what = "torch.compile failed; the trial continues without it: %s"
            log.warning(what, line_of(error))
        # After the except block the error and the tensors of its frames are gone.
        self.do_without()
        return work()

    def do_without(self) -> None:
        """Stop compiling."""
        self.compiled = False
        self.close()

    def metrics(self) -> dict[str, float]:
        """The metric `compiled`, 1 or 0, unless the setting is never."""
        return {} if self._setting == NEVER else {"compiled": float(self.compiled)}

    def close(self) -> None:
        """Release the compiled code, which torch would keep, with the model."""
        if self._compiled is not None:
            self._compiled = None
            torch.compiler.reset()
