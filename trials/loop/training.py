"""The training loop, from top to bottom.

`TrainingRun` is a `contract.Run`: iterating over it trains. A checkpoint holds its `position` and
its state: weights, optimizer, running mean and early stopping. Everything random derives from the
seed and the step. A run that continues from a checkpoint therefore has the same results, bit for
bit, as one that never stopped, unless its budget is a time.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from trials.checkpoints.continuing import opened_on_ranks
from trials.checkpoints.manifests import STATE
from trials.checkpoints.weights import tensor_bytes
from trials.contract import Diverged, Finding, Report, Setup
from trials.data.batching import Ints, cut
from trials.data.order import BatchOrder
from trials.data.workload import Batch, Workload
from trials.devices import processes
from trials.devices.memory import is_out_of_memory
from trials.devices.precision import Precision
from trials.devices.processes import StepCounts
from trials.loop.captured import CapturedRun
from trials.loop.horizon import Horizon
from trials.loop.micro_batch import micro_batch_of, unchanged_buffers
from trials.loop.optim.updates import Updates
from trials.loop.position import Position
from trials.loop.saves import Content, RunSaves
from trials.loop.stopping import EarlyStopping
from trials.loop.telemetry.instruments import TakenStep, Telemetry
from trials.running.randomness import Use, derive, seed_everything
from trials.settings import Settings

CHECK_EVERY = 20  # steps between two looks at losses and gradients; each look waits for the device


@dataclass(frozen=True)
class _Gradients:
    """The gradients of this rank's share of a batch, which the model's parameters hold. `loss`: a
    scalar, still on the device. `cells`: tokens and padding."""

    loss: torch.Tensor
    tokens: int
    cells: int


class TrainingRun:
    def __init__(
        self,
        workload: Workload,
        settings: Settings,
        setup: Setup,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        device = torch.device(setup.device)
        group = processes.current()
        precision = Precision(settings.precision, device)
        self._workload = workload
        self._seed = setup.seed
        self._monitor = settings.monitor
        self._goal = setup.goal
        self._clock = clock
        self._group = group
        self._precision = precision
        self._updates = Updates(workload.model, settings, precision)
        self._replica = processes.Replica(workload, group)
        self._captured = CapturedRun(workload, settings, precision)
        if settings.ema is None:  # whose weights are evaluated in other places
            workload.replay = self._captured.replay
        self._micro_batch = micro_batch_of(workload, settings, precision, group.size)
        self._order = BatchOrder(workload.lengths, settings, setup.seed)
        self._horizon = Horizon(setup.budget, settings, self._order, workload.lengths)
        mode = settings.monitor_mode(setup.goal)
        self._stopping = EarlyStopping(mode, settings.patience, settings.min_delta)
        self._saves = RunSaves(setup, settings, workload.write, group)
        self._telemetry = Telemetry(precision, group.total)
        self.position = Position()
        workload.model.train()
        source = self._saves.source()
        if source is not None:
            self._restore(source)

    # ----------------------------------------------------------------------------------- the loop

    def __iter__(self) -> Iterator[Report | None]:
        self._captured.begin()
        self._fit_micro_batch()
        while True:
            level = self._horizon.level_due(self.position)
            if self.finished is not None:
                return
            if level is not None:
                yield self._report(level)
                continue
            self._train_step()
            yield None

    def _train_step(self) -> None:
        began = self._clock()
        here = self.position
        rows = self._order.rows(here.step)
        rate = self._horizon.learning_rate(here, rows)
        step, gradients = self._step(rows, rate)
        self._count_step(step, gradients, began)

    def _step(self, rows: Ints, rate: float) -> tuple[TakenStep, _Gradients]:
        updates, samples = self._updates, len(rows)
        weight = self._workload.weight(rows)
        gradients = self._micro_batch.fitting(
            samples, lambda size: self._accumulate_with_fallback(rows, weight, size)
        )
        norm = updates.apply(rate)
        number = self.position.step + 1
        step = TakenStep(number, rate, samples, weight, gradients.loss, norm)
        return step, gradients

    def _accumulate_with_fallback(self, rows: Ints, weight: float, size: int) -> _Gradients:
        for _ in range(2):
            try:
                return self._accumulate(rows, weight, size)
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error) or not self._captured.try_without_graphs():
                    raise
        raise AssertionError("without graphs there are none to give back")

    def _accumulate(self, rows: Ints, weight: float, size: int) -> _Gradients:
        """The gradients of the mean loss of a batch, added up over micro-batches of `size`. May be
        repeated for the same step: it starts without gradients and with the step's own random
        state."""
        here, group, precision = self.position, self._group, self._precision
        rank_step = here.step * group.size + group.rank
        seed = derive(self._seed, Use.STEP, rank_step)
        seed_everything(seed)
        # On the device: reading it (`.item()`) would wait for the micro-batch to be done.
        loss = torch.zeros((), device=precision.device)
        tokens = cells = 0
        mine, weight = group.share(rows, weight)
        parts = cut(mine, size)
        for part in parts:
            batch = self._workload.batch(part)
            # Ranks exchange their gradients only with the last micro-batch.
            is_first, is_last = part is parts[0], part is parts[-1]
            with self._replica.synchronised(is_last):
                loss += self._pass(batch, weight, is_first, is_whole=len(part) == size)
            tokens += batch.tokens
            cells += batch.cells
        return _Gradients(loss, tokens, cells)

    def _pass(self, batch: Batch, weight: float, is_first: bool, is_whole: bool) -> torch.Tensor:
        """The micro-batch's share of the batch's mean loss, whose gradients are added up."""
        scale = self._updates.scale()
        if is_whole and self._captured.replays(batch):
            return self._captured.train(batch, weight, scale, is_first, self._share)
        if is_first:
            self._updates.zero_grad(in_place=self._captured.captures)
        share = self._share(batch, weight)
        scaled = share * scale
        scaled.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return share.detach()

    def _share(self, batch: Batch, weight: float | torch.Tensor) -> torch.Tensor:
        with self._precision.autocast():
            total = self._replica.loss_sum(batch)
            # Divided by the whole batch, so that its parts add up to the gradient of its mean.
            return total / weight

    def _count_step(self, step: TakenStep, gradients: _Gradients, began: float) -> None:
        here, telemetry = self.position, self._telemetry
        after = here.after_step(step.samples)
        self.position = after
        telemetry.step(step)
        if step.number % CHECK_EVERY == 0:
            telemetry.check()
        seconds = here.seconds + self._clock() - began
        counts = StepCounts(gradients.tokens, gradients.cells, seconds)
        agreed = self._group.agree_on(counts)
        telemetry.count(agreed.tokens, agreed.cells)
        tokens = here.tokens + agreed.tokens
        self.position = replace(after, tokens=tokens, seconds=agreed.seconds)
        if self._saves.due(step.number):
            self._save(best=False)

    # ------------------------------------------------------------------------------------ reports

    @property
    def finished(self) -> str | None:
        """The reason why the iteration has ended by itself; None until then."""
        if self._horizon.is_reached(self.position):
            return "budget used"
        return self._stopping.exhausted

    def _report(self, level: float) -> Report:
        measured_before = self.position.metrics is not None
        metrics = self._measure()
        # A step may reach several levels: its measurement counts once.
        best = not measured_before and self._stopping.note(metrics[self._monitor])
        here = replace(self.position, reported=level)
        self.position = here
        is_last = self.finished is not None
        self._save(best, can_wait=not is_last)
        whole, best_whole = self._saves.named_by_report(level, is_last)
        saved_at = self._saves.newest_level
        samples = self._workload.by_sample(self._goal.metric) if is_last and self._goal else None
        return Report(
            *(level, metrics, here.step, here.seconds, whole, best_whole, saved_at), samples=samples
        )

    def _measure(self) -> Mapping[str, float]:
        if self.position.metrics is not None:
            return self.position.metrics
        self._wait_for_device()
        self._sync_buffers()
        self._group.require_equal(self._workload.model)
        metrics = self._evaluate()
        telemetry = self._telemetry
        telemetry.trace.report(self.position.step, metrics["train_loss"], metrics["loss"])
        self._refuse_divergence(metrics)
        metrics["skipped_steps"] = float(self._updates.skipped)
        metrics["micro_batch"] = float(self._micro_batch.size)
        metrics |= self._captured.metrics()
        peak_bytes = telemetry.peak_memory_bytes()
        metrics["peak_memory_bytes"] = self._captured.peak_bytes(peak_bytes)
        self.position = replace(self.position, metrics=metrics)
        return metrics

    def _wait_for_device(self) -> None:
        """Settle, and count the time of waiting: the device was still training."""
        began = self._clock()
        self._telemetry.settle()
        own = self.position.seconds + self._clock() - began
        seconds = self._group.agree(own)
        self.position = replace(self.position, seconds=seconds)

    def _evaluate(self) -> dict[str, float]:
        with self._updates.averaged():
            evaluated = self._workload.evaluate(self._precision)
        step_metrics = self._telemetry.read(self.position.seconds)
        return self._group.agree(evaluated | step_metrics)

    def _refuse_divergence(self, metrics: Mapping[str, float]) -> None:
        loss = metrics["loss"]
        if math.isfinite(loss):
            return
        rate, norm = metrics["learning_rate"], metrics["grad_norm"]
        raise Diverged(
            f"validation loss became {loss} at step {self.position.step} (learning rate "
            f"{rate:.3g}, last gradient norm {norm:.3g}); try a lower learning rate"
        )

    def findings(self) -> tuple[Finding, ...]:
        return self._telemetry.findings()

    # -------------------------------------------------------------------------------- checkpoints

    def save(self) -> Path | str | None:
        if not self._saves.is_saved(self.position):
            self._save(best=False)
        return self._saves.join(self.position)

    @property
    def best(self) -> Path | str | None:
        return self._saves.best

    def recorded(self, resource: float) -> None:
        self._saves.recorded(resource)

    def _save(self, best: bool, can_wait: bool = False) -> None:
        self._telemetry.settle()
        self._sync_buffers()
        self._saves.save(self.position, self._content, best, can_wait)

    def _sync_buffers(self) -> None:
        model_buffers = self._workload.model.buffers()
        mean_buffers = self._updates.buffers()
        self._group.sync([*model_buffers, *mean_buffers])

    def _content(self) -> Content:
        with self._updates.averaged():
            weights = self._workload.weights()
        return Content(weights, self._state())

    def _state(self) -> dict[str, Any]:
        return {
            "position": asdict(self.position),
            "telemetry": self._telemetry.state_dict(),
            "micro_batch": self._micro_batch.size,
            "updates": self._updates.state_dict(),
            "progress": self._stopping.state_dict(),
        }

    def _restore(self, source: Path | str) -> None:
        group = self._group
        with opened_on_ranks(source, group.rank, group.once) as checkpoint:
            files = checkpoint.files
            state = torch.load(files / STATE, map_location="cpu", weights_only=True)
            self._workload.read(files)
        self.position = Position(**state["position"])
        self._telemetry.load_state_dict(state["telemetry"])
        self._micro_batch.resume_with(state["micro_batch"])
        self._updates.load_state_dict(state["updates"])
        self._stopping.load_state_dict(state["progress"])
        if not self._saves.continue_from(source, checkpoint.path):
            self._stopping.forget_best()

    # -------------------------------------------------------------------------- before and after

    def _fit_micro_batch(self) -> None:
        """Find the micro-batch with the longest batch, if needed; the model stays the same."""
        if not self._micro_batch.must_be_found:
            return
        rows = self._order.longest()
        weight = self._workload.weight(rows)
        with unchanged_buffers(self._workload.model):
            self._micro_batch.rehearse(
                lambda size: self._accumulate_with_fallback(rows, weight, size)
            )

    def rehearse(self) -> dict[str, float]:
        """Train one step and evaluate one batch, each of the longest samples, as the worst case.
        Returns `step_seconds`, `evaluation_seconds`, `parameters`, `peak_memory_bytes`,
        `weights_bytes` and `checkpoint_bytes`."""
        # A first step that captures says nothing about the others.
        self._captured.disable()
        rows = self._order.longest()
        self._fit_micro_batch()
        began = self._clock()
        step, _ = self._step(rows, rate=0.0)
        self._telemetry.step(step)
        self._telemetry.settle()
        trained = self._clock()
        workload = self._workload
        workload.evaluate_longest(self._precision)
        content = self._content()
        evaluated = self._clock()
        weights_bytes = tensor_bytes(content.weights)
        state_bytes = tensor_bytes(content.state)
        parameters = sum(parameter.numel() for parameter in workload.model.parameters())
        return {
            "step_seconds": trained - began,
            "evaluation_seconds": evaluated - trained,
            "parameters": float(parameters),
            "peak_memory_bytes": self._telemetry.peak_memory_bytes(),
            "weights_bytes": float(weights_bytes),
            "checkpoint_bytes": float(weights_bytes + state_bytes),
        }

    def close(self) -> bool:
        """End the thread of saves; release the model, gradients and optimizer's state."""
        self._saves.close()
        self._updates.close(keeps_gradients=self._captured.close())
        return True
