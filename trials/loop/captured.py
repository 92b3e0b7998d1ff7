"""Captured steps: a run's forward and backward passes, evaluations and updates as CUDA graphs.

A small model's kernels are shorter than the time that the processor needs to start them. A graph
starts all kernels of a pass at once. It works in fixed places: weights, buffers, gradients, a batch
of one shape. The batch is copied there, and so are the weights of the next trial of the same model
in this process, which replays the graphs of the one before.

Every pass of a shape that recurs is a replay, its first one too, so that results do not depend on
what a process has captured before. When a shape is captured, its batch is computed plainly first,
and both results must agree to rounding. Where they do not, where memory is short, or where a model
does what cannot be captured, the run goes on without graphs, and so do later ones of its kind in
this process. After a shortage of memory, results may thus differ by rounding from those of another
process.
"""

import logging
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import torch
from torch import nn

from trials.data.workload import Batch, Work, Workload
from trials.devices import memory, processes
from trials.devices.graphs import (
    Graph,
    NotCapturableError,
    RandomState,
    Tensors,
    new_pool,
    reads_of,
)
from trials.devices.precision import Precision
from trials.foreign import line_of
from trials.settings import Settings

log = logging.getLogger(__name__)

CAPTURING = {"cuda"}  # the types of devices on which steps are captured
ROUNDING = {"fp32": 1e-3, "fp16": 1e-2, "bf16": 5e-2}
"""The largest difference between a plain pass and a replay, as a share of the plain one's size."""
KEPT_SHARE = 0.1  # the most memory that is kept for the next trial, by the peak of this one
MOST = 64  # graphs that a process keeps
MASK = "attention_mask"

Share = Callable[[Batch, torch.Tensor], torch.Tensor]
"""The loss of a micro-batch, divided by the targets of the whole batch."""


def is_captured(settings: Settings, device: torch.device) -> bool:
    if settings.compile == "never" or settings.gradient_checkpointing:
        return False
    return device.type in CAPTURING and processes.current().size == 1


@dataclass(frozen=True)
class _Captured:
    graph: Graph
    batch: Batch
    reads: object


class _Places:
    """The tensors that the graphs of one kind of run work on, and the graphs."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self.parameters = list(model.parameters())
        self.tensors = [tensor.detach() for tensor in _tensors(model)]
        self.pool = new_pool(device)
        self.graphs: dict[Hashable, _Captured] = {}
        self.peak_bytes = 0
        self.divisor = torch.ones((), device=device)
        self.scale = torch.ones((), device=device)

    def take_in(self, model: nn.Module) -> None:
        """Move the weights of another model of the same kind here, and let it use these tensors."""
        for own, place in zip(_tensors(model), self.tensors, strict=True):
            place.copy_(own.detach())
            own.data = place
        for parameter, former in zip(model.parameters(), self.parameters, strict=True):
            parameter.grad = former.grad
        self.parameters = list(model.parameters())

    def gradients(self) -> list[torch.Tensor]:
        return _gradients(self.parameters)

    def buffers(self) -> list[torch.Tensor]:
        return self.tensors[len(self.parameters) :]

    def hold(self, model: nn.Module) -> bool:
        return [t.data_ptr() for t in _tensors(model)] == [t.data_ptr() for t in self.tensors]


_kept: dict[Hashable, _Places] = {}  # the places of the last run's kind, for the next run
_refused: set[Hashable] = set()  # the kinds of run that this process could not capture


def _tensors(model: nn.Module) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]


def _gradients(parameters: list[nn.Parameter]) -> list[torch.Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


class CapturedRun:
    def __init__(self, workload: Workload, settings: Settings, precision: Precision) -> None:
        self._workload = workload
        self._precision = precision
        self._is_wanted = is_captured(settings, precision.device)
        self.captures = self._is_wanted
        self._key: Hashable = None
        if self._is_wanted:
            self._key = _kind(workload, settings, precision)
            self.captures = self._key not in _refused
        self._places: _Places | None = None
        self._is_first = True  # of its kind

    def begin(self) -> None:
        """Move the model to the places of the last run of its kind, before its first step."""
        kept = _kept.pop(self._key, None) if self.captures else None
        _drop_kept()
        if not self.captures:
            return
        if kept is not None:
            kept.take_in(self._workload.model)
        self._places = kept or _Places(self._workload.model, self._precision.device)
        self._is_first = kept is None

    def replays(self, batch: Batch) -> bool:
        return self.captures and batch.recurs

    def train(
        self, batch: Batch, weight: float, scale: torch.Tensor, is_first: bool, share: Share
    ) -> torch.Tensor:
        """The loss of a micro-batch, whose gradients are added to those before. `weight`: the
        targets of the whole batch. `scale`: of the gradients, a scalar on the device."""
        places = self._places
        assert places is not None
        places.divisor.fill_(weight)
        places.scale.copy_(scale)
        parameters = places.parameters

        def plainly(batch: Batch) -> Tensors:
            if is_first:
                for gradient in places.gradients():
                    gradient.zero_()
            loss = share(batch, places.divisor)
            (loss * places.scale).backward()  # type: ignore[no-untyped-call]  # torch's
            return (loss.detach(),)

        def in_places(batch: Batch) -> Tensors:
            trained = [parameter for parameter in parameters if parameter.grad is not None]
            gradients = _gradients(trained)
            loss = share(batch, places.divisor)
            found = torch.autograd.grad(loss * places.scale, trained, materialize_grads=True)
            # A few kernels, where adding each gradient by itself takes one for each.
            if is_first:
                torch._foreach_copy_(gradients, found)
            else:
                torch._foreach_add_(gradients, list(found))
            return (loss.detach(),)

        name = "training" if is_first else "accumulation"
        (loss,) = self._replayed(name, batch, in_places, plainly)
        return loss

    def replay(self, name: str, batch: Batch, work: Work) -> Tensors:
        return self._replayed(name, batch, work, None) if self.replays(batch) else work(batch)

    def _replayed(self, name: str, batch: Batch, work: Work, plainly: Work | None) -> Tensors:
        """The results of work, from its graph. `plainly`: a pass that trains, without a graph."""
        places = self._places
        if places is None:
            return work(batch)
        shapes = [(key, *tensor.shape) for key, tensor in batch.inputs.items()]
        key = (name, *shapes, batch.labels.shape)
        captured = places.graphs.get(key)
        if captured is None:
            captured = self._capture(places, batch, work, plainly)
            if captured is None:
                return (plainly or work)(batch)
            if len(places.graphs) >= MOST:
                places.graphs.clear()
            places.graphs[key] = captured
        _fill(captured.batch, batch)
        return captured.graph.replay()

    def _capture(
        self, places: _Places, batch: Batch, work: Work, plainly: Work | None
    ) -> _Captured | None:
        try:
            return _captured(places, batch, work, plainly, self._precision)
        except NotCapturableError as error:
            self._give_up(line_of(error))
        except (MemoryError, RuntimeError) as error:
            if not memory.is_out_of_memory(error):
                raise
            self._give_up("memory is short")
        # After the except block the error and the tensors of its frames are gone.
        memory.release_memory()
        return None

    def _give_up(self, why: str) -> None:
        log.warning("steps are not captured, and take longer: %s", why)
        _refused.add(self._key)
        self.disable()

    def try_without_graphs(self) -> bool:
        """Compute plainly from now on, if that leaves more memory; False if it does not."""
        if self._places is None or not self._places.graphs:
            return False
        self._give_up("memory is short")
        memory.release_memory()
        return True

    def disable(self) -> None:
        self.captures = False
        if self._places is not None:
            self._places.graphs.clear()

    def metrics(self) -> dict[str, float]:
        """The metric `captured`, 1 or 0, where steps may be captured."""
        return {"captured": float(self.captures)} if self._is_wanted else {}

    def peak_bytes(self, measured: float) -> float:
        """The peak of memory, which replays do not show."""
        if self._places is None:
            return measured
        self._places.peak_bytes = max(self._places.peak_bytes, int(measured))
        return float(self._places.peak_bytes)

    def close(self) -> bool:
        """Keep the graphs for the next run of the same kind; returns whether they are kept."""
        places, self._places = self._places, None
        if places is None or not places.graphs or not places.hold(self._workload.model):
            return False
        # The next trial's model is built beside what is kept.
        most = self._device_bytes()
        if most is not None and places.peak_bytes > KEPT_SHARE * most:
            return False
        _kept[self._key] = places
        if self._is_first:
            memory.keep_more()
        return True

    def _device_bytes(self) -> int | None:
        device = self._precision.device
        return memory.entitled_bytes(device) if device.type == "cuda" else None


def _drop_kept() -> None:
    if _kept:
        _kept.clear()
        memory.release_memory()


def _kind(workload: Workload, settings: Settings, precision: Precision) -> Hashable:
    """All that graphs depend on beside the tensors in their places and the shape of a batch."""
    model = workload.model
    config = getattr(model, "config", None)
    tensors = [(*t.shape, t.dtype, t.requires_grad) for t in _tensors(model)]
    described = repr(model) if config is None else f"{model}{config.to_json_string()}"
    searched = (settings.dropout, settings.label_smoothing, settings.lora_alpha)
    baked = (type(workload), workload.baked)
    return (described, tuple(tensors), baked, searched, precision.name, precision.device)


def _captured(
    places: _Places, batch: Batch, work: Work, plainly: Work | None, precision: Precision
) -> _Captured:
    """Capture work, and compare a replay with the plain computation. Gradients, buffers and the
    random state are afterwards what they were before, however it ends."""
    static = _copied(batch)
    if MASK in static.inputs:
        static.inputs[MASK][0, -1] = 0  # a mask without padding might be left out, in one of both
    state: list[torch.Tensor] = []
    if plainly is not None:
        state = [*places.gradients(), *places.buffers()]
    before = [tensor.clone() for tensor in state]
    drawn = RandomState(precision.device)

    def forget_gradients() -> None:
        if plainly is not None:
            for gradient in places.gradients():
                gradient.zero_()

    def restore() -> None:
        forget_gradients()  # those without a value before too
        for tensor, value in zip(state, before, strict=True):
            tensor.copy_(value)
        drawn.restore()

    def computed(work: Callable[[], Tensors]) -> list[torch.Tensor]:
        forget_gradients()
        loss = work()[0]
        gradients = [] if plainly is None else [each.clone() for each in places.gradients()]
        if drawn.has_drawn_on_host():
            raise NotCapturableError("the model draws random numbers on the processor")
        restore()
        return [loss, *gradients]

    try:
        plain = computed(lambda: (plainly or work)(static))
        # Once more: what a model keeps for a length it has made by now.
        reads = reads_of(lambda: (plainly or work)(static))
        restore()
        graph = Graph(lambda: work(static), places.pool)
        drawn.restore()
        _demand_equal(plain, computed(graph.replay), ROUNDING[precision.name])
    finally:
        restore()
    return _Captured(graph, static, reads)


def _demand_equal(plain: list[torch.Tensor], replayed: list[torch.Tensor], rounding: float) -> None:
    for whole in (slice(0, 1), slice(1, None)):
        expected, found = plain[whole], replayed[whole]
        if not expected:
            continue
        off_by = nn.utils.get_total_norm(torch._foreach_sub(found, expected))
        norm = nn.utils.get_total_norm(expected)
        difference, size = torch.stack([off_by.float(), norm.float()]).tolist()
        tiny = torch.finfo(torch.float32).tiny
        is_equal = difference <= rounding * size + tiny  # false for NaN too
        if math.isfinite(size) and not is_equal:
            what = "a loss" if whole.start == 0 else "a gradient"
            raise NotCapturableError(
                f"{what} of a replay differs by {difference / max(size, tiny):.1%}"
            )


def _copied(batch: Batch) -> Batch:
    inputs = {name: tensor.clone() for name, tensor in batch.inputs.items()}
    return replace(batch, inputs=inputs, labels=batch.labels.clone())


def _fill(places: Batch, batch: Batch) -> None:
    for name, place in places.inputs.items():
        place.copy_(batch.inputs[name])
    places.labels.copy_(batch.labels)
