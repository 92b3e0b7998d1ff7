"""The training loop, from top to bottom.

`TrainingRun` is a `contract.Run`: iterated, it trains. Everything it knows about where it is stands in a few counters
(`step`, `samples`, `seconds`, the last level reported), and everything random derives from the seed and the step; that
is why a run that continues from a checkpoint goes on bit for bit as if it had never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from trials import diagnose, distributed, feed, memory, meters
from trials.batching import Ints
from trials.checkpoint import Checkpoints, opened
from trials.compiling import CompilableLoss
from trials.contract import Diverged, Finding, Report, Setup, Unit
from trials.gpu import Gpu
from trials.order import Order
from trials.precision import Precision
from trials.randomness import Use, derive, seed_everything
from trials.saving import STATE, Content, Saver, stretch
from trials.schedules import multiplier
from trials.settings import Settings
from trials.stopping import Progress
from trials.trace import Trace
from trials.updates import Updates
from trials.workload import Workload

CHECK_EVERY = 20
"""Steps between two looks at losses and gradients: each look waits for the device."""


class TrainingRun:
    """One attempt to train one configuration.

    Args:
        workload: The model and its data.
        settings: How to train it.
        setup: Seed, budget, folder, device, and the checkpoint to continue from.
        clock: Seconds; only differences count.
    """

    def __init__(
        self, workload: Workload, settings: Settings, setup: Setup, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._device = torch.device(setup.device)
        self._workload, self._settings, self._setup, self._clock = workload, settings, setup, clock
        self._precision = Precision(settings.precision, self._device)
        self._updates = Updates(workload.model, settings, self._precision, self._device)
        self._group = distributed.current()
        self._replica = self._group.replicate(workload)
        self._loss = CompilableLoss(settings.compile, self._replica.loss_sum, self._device, self._group.size)
        self._progress = Progress(settings.monitor_mode, settings.patience, settings.min_delta)
        self._trace = Trace()
        self._gpu = Gpu(self._device, workload.model, self._precision.name)
        self._meter = meters.Meter(self._precision.scales, self._trace)
        self._checkpoints = Checkpoints(setup.folder, settings.keep_checkpoints)
        every = settings.save_every_steps, settings.save_every_minutes
        self._saver = Saver(self._checkpoints, workload.write, *every)
        self._micro_batch = memory.micro_batch_of(workload, settings, self._precision, self._device, self._group.size)
        self._order = Order(workload.lengths, settings, setup.seed)
        self._feed = feed.Feed(workload, self._order, self._group, settings.data_workers)
        self._saved: tuple[int, float] | None = None
        self._measured: tuple[int, dict[str, float]] | None = None
        self.step = 0
        self.samples = 0
        self.tokens = 0
        self.seconds = 0.0
        self._reported = 0.0
        self.finished: str | None = None
        meters.start_memory(self._device)
        workload.model.train()
        source = setup.resume_from or self._saver.begun(self._stretch())
        if source is not None:
            self._restore(source)

    # ------------------------------------------------------------------------------------------- the loop

    def __iter__(self) -> Iterator[Report | None]:
        """Train: None after every optimizer step, a Report at every level of the budget's grid."""
        self._fit_micro_batch()
        while True:
            while (level := self._level_due()) is not None:
                yield self._report(level)
            if self.finished is not None:
                return
            self._train_step()
            if self._saver.between_reports and self._group.agree(self._saver.due(self.step)):
                self._save(best=False)
            yield None

    def _train_step(self) -> None:
        """The next batch of the epoch, one optimizer step, and on."""
        began = self._clock()
        rows = self._order.rows(self.step, self.samples)
        rate = self._rate_for(rows)
        weight = self._workload.weight(rows)
        loss, norm = self._optimize(rows, weight, rate)
        self.step += 1
        self.samples += len(rows)
        self._meter.step(self.step, rate, len(rows), weight, loss, norm)
        if self.step % CHECK_EVERY == 0:
            self._look()
        self.seconds = self._group.agree(self.seconds + self._clock() - began)
        if self.step % CHECK_EVERY == 0:
            self._loss.consider(self.step, self.seconds, self.resource / self._setup.budget.total)

    def _optimize(self, rows: Ints, weight: float, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
        """One optimizer step on the samples `rows`, which have `weight` targets; the mean loss of a target and the
        gradient's norm, left on the device."""
        loss, tokens, cells = self._micro_batch.fitting(len(rows), lambda size: self._gradients(rows, weight, size))
        tokens, cells = self._group.added(tokens, cells)
        self._meter.count(tokens, cells)
        self.tokens += tokens
        norm = self._updates.apply(rate, len(rows))
        return self._group.total(loss), norm

    def _gradients(self, rows: Ints, weight: float, size: int) -> tuple[torch.Tensor, int, int]:
        """`_accumulate`, done again without the compiler where that fails."""
        return self._loss.attempt(lambda: self._accumulate(rows, weight, size))

    def _accumulate(self, rows: Ints, weight: float, size: int) -> tuple[torch.Tensor, int, int]:
        """The gradients of the samples `rows`, in micro-batches of `size`; their mean loss, tokens and cells. May be
        done again for the same step: it starts with no gradients, and with the step's own random state."""
        seed_everything(derive(self._setup.seed, Use.STEP, self.step * self._group.size + self._group.rank))
        self._updates.begin()
        loss, tokens, cells = torch.zeros((), device=self._device), 0, 0
        parts, weight = self._feed.parts(rows, weight, size, self.step, self.samples)
        for part in parts:
            with self._trace.waiting():
                batch = self._feed.batch(part)
            with self._replica.synchronised(part is parts[-1]), self._precision.autocast():
                # Divided by the whole batch, so that its parts add up to the gradient of its mean.
                share = self._loss.sum(batch) / weight
            self._updates.backward(share)
            loss += share.detach()
            tokens, cells = tokens + batch.tokens, cells + batch.cells
        return loss, tokens, cells

    def _fit_micro_batch(self) -> None:
        """Rehearse the longest batch where its micro-batch is to be found; leaves no trace in the model."""
        if not self._micro_batch.wanted:
            return
        rows = self._order.longest()
        weight = self._workload.weight(rows)
        with memory.unchanged_buffers(self._workload.model):
            self._micro_batch.rehearse(lambda size: self._gradients(rows, weight, size))

    def _look(self) -> None:
        """Wait for the device, and read what it has to say: losses and gradients, memory, utilisation."""
        self._meter.settle()
        self._trace.memory(meters.memory_in_use_bytes(self._device))
        self._gpu.sample()

    # ----------------------------------------------------------------------------------------- where it is

    @property
    def resource(self) -> float:
        """How far it has trained, in the budget's unit."""
        return self._in_unit(self.step, self.samples, self.tokens)

    def _in_unit(self, steps: int, samples: int, tokens: int) -> float:
        match self._setup.budget.unit:
            case Unit.STEPS:
                return float(steps)
            case Unit.EPOCHS:
                return self._order.epochs(steps, samples)
            case Unit.SAMPLES:
                return float(samples)
            case Unit.TOKENS:
                return float(tokens)
            case Unit.SECONDS:
                return self.seconds

    def _rate_for(self, rows: Ints) -> float:
        """The learning rate of a step on the samples `rows`: the schedule's at the share of the full budget that is
        used halfway through it, so that neither the first step of a warm-up nor the last of a decay has a rate of zero.

        A step that fp16's loss scaling skipped has changed nothing, and the schedule does not move on with it, though
        the data does: a schedule ends as many steps before its horizon as were skipped. Budgets in tokens and in
        seconds move on.
        """
        settings = self._settings
        steps, samples = self.step - self._updates.skipped_steps, self.samples - self._updates.skipped_samples
        tokens = self.tokens + int(self._workload.lengths[rows].sum())
        after = self._in_unit(steps + 1, samples + len(rows), tokens)
        halfway = (self._in_unit(steps, samples, self.tokens) + after) / 2
        progress = halfway / self._setup.budget.total
        return settings.peak_learning_rate * multiplier(
            settings.schedule, progress, settings.warmup, settings.decay_fraction
        )

    def _level_due(self) -> float | None:
        """The lowest level that is reached and not yet reported."""
        if self.finished is not None:
            return None
        reached = self.resource * (1 + 1e-9)  # 3 steps of 10 reach 0.1 * 3, which is a little more than 0.3
        return next((level for level in self._setup.budget.report_at if self._reported < level <= reached), None)

    # ------------------------------------------------------------------------------------------- reports

    def _report(self, level: float) -> Report:
        """Evaluate, note the best, decide whether to go on, save."""
        metrics = self._measure()
        best = self._progress.note(metrics[self._settings.monitor])
        self._reported = level
        self.finished = self._reason_to_stop()
        self._save(best)
        whole = self._saver.join() if self.finished else self._saver.newest()
        if whole is not None:
            self._checkpoints.reported(level, whole)
        return Report(level, metrics, self.step, self.seconds, whole)

    def _measure(self) -> dict[str, float]:
        """The metrics at this step; measured once where a step reached two levels, also when resumed in between."""
        if self._measured is not None and self._measured[0] == self.step:
            return self._measured[1]
        began = self._clock()
        self._meter.settle()
        self.seconds = self._group.agree(self.seconds + self._clock() - began)  # the device was still training
        with self._updates.averaged():
            metrics = self._workload.evaluate(self._precision) | self._meter.read(self.seconds)
        metrics = self._group.agree(metrics | self._gpu.read(metrics["tokens_per_second"]))
        self._trace.report(self.step, metrics)
        if not math.isfinite(metrics["loss"]):
            rate = metrics["learning_rate"]
            raise Diverged(
                f"validation loss became {metrics['loss']} at step {self.step} (learning rate {rate:.3g}, "
                f"last gradient norm {metrics['grad_norm']:.3g}); try a lower learning rate"
            )
        metrics["skipped_steps"] = float(self._updates.skipped_steps)
        metrics["micro_batch"] = float(self._micro_batch.size)
        metrics |= self._loss.read()
        metrics["peak_memory_bytes"] = float(meters.peak_memory_bytes(self._device))
        self._measured = self.step, metrics
        return metrics

    def _reason_to_stop(self) -> str | None:
        if self._reported >= self._setup.budget.total:
            return "budget used"
        return self._progress.exhausted

    # --------------------------------------------------------------------------------------- checkpoints

    def save(self) -> Path | str | None:
        """Write a checkpoint of this moment and wait until it is whole; one that is there is not written again."""
        if self._saved != (self.step, self._reported):
            self._save(best=False)
        return self._group.once(self._saver.join)

    def recorded(self, resource: float) -> None:
        """The reports up to `resource` are on record: checkpoints from before may go."""
        if self._group.first:
            self._checkpoints.recorded(resource)

    def _save(self, best: bool) -> None:
        self._meter.settle()
        self._group.once(lambda: self._saver.save(self.step, self._content(), best, self._stretch()))
        self._saved = self.step, self._reported

    def _stretch(self) -> str:
        return stretch(self._setup, self._reported)

    def _content(self) -> Content:
        with self._updates.averaged():
            weights = self._workload.weights()
        return Content(weights, self._state())

    def _state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "samples": self.samples,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "reported": self._reported,
            "micro_batch": self._micro_batch.size,
            "loss": self._loss.state_dict(),
            "updates": self._updates.state_dict(),
            "progress": self._progress.state_dict(),
            "meter": self._meter.state_dict(),
            "trace": self._trace.state_dict(),
            "measured": self._measured,
        }

    def _restore(self, source: Path | str) -> None:
        with opened(source) as folder:
            state = torch.load(folder / STATE, map_location="cpu", weights_only=True)
            self._workload.read(folder)
        self.step, self.samples, self.seconds = state["step"], state["samples"], state["seconds"]
        self.tokens = state["tokens"]
        self._reported = state["reported"]
        self._micro_batch.take(state["micro_batch"])
        self._loss.load_state_dict(state["loss"])
        self._updates.load_state_dict(state["updates"])
        self._progress.load_state_dict(state["progress"])
        self._meter.load_state_dict(state["meter"])
        self._trace.load_state_dict(state["trace"])
        self._measured = state["measured"]
        self.finished = self._reason_to_stop()

    # --------------------------------------------------------------------------------------------- around

    def rehearse(self) -> dict[str, float]:
        """Train one step and evaluate one batch, each of the longest samples: what a trial costs at worst.

        Returns: `step_seconds`, `evaluation_seconds`, `parameters`, `peak_memory_bytes`.
        """
        self._loss.do_without()  # a first step that compiles says nothing of the others
        rows = self._order.longest()
        self._fit_micro_batch()
        began = self._clock()
        weight = self._workload.weight(rows)
        self._meter.step(1, 0.0, len(rows), weight, *self._optimize(rows, weight, rate=0.0))
        self._meter.settle()
        trained = self._clock()
        self._workload.evaluate_longest(self._precision)
        return {
            "step_seconds": trained - began,
            "evaluation_seconds": self._clock() - trained,
            "parameters": float(sum(p.numel() for p in self._workload.model.parameters())),
            "peak_memory_bytes": float(meters.peak_memory_bytes(self._device)),
        }

    def findings(self) -> tuple[Finding, ...]:
        """What its course so far shows of its health."""
        return diagnose.diagnose(self._trace.records(self.seconds))

    def close(self) -> bool:
        """End the threads of data and saves; release the model, the gradients and the optimizer's state."""
        self._saver.close()
        self._updates.close()
        self._loss.close()
        return self._feed.close()
