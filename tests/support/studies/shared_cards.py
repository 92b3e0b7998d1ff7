"""Simulated GPUs that slots share, on which trials train more slowly the more there are."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.history import History
from hpsearch.study_file.levels import trial_budget
from support.studies.small import Bowl, Simulation, brain, spec_with

MOST = 16

Curve = Callable[[int], float | None]
"""The speed of so many trials together; None where memory is short."""


class SharedCards(SimulatedExecutor):
    """Cards with slots as the brain orders them: the slot `c0-1` is the second one of card `c0`."""

    curve: Curve
    most = MOST

    @staticmethod
    def room(params: Mapping[str, Any]) -> int:
        """The most trials on a card beside which a configuration has memory; 0 for never."""
        return MOST

    def fill(self, order: ev.Fill) -> None:
        """Add slots, or let some end after what they were sent in the meantime."""
        for card in dict.fromkeys(each.split("-")[0] for each in self.slots):
            mine = [each for each in self.slots if each.split("-")[0] == card]
            for _ in range(len(mine), order.slots):
                self._up(card)
            for slot in mine[order.slots :]:
                self.slots.remove(slot)
                self._going.append(slot)

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """Events, first of slots that go: what trains there stops where it is."""
        for slot in self._going:
            for key in [key for key, run in self._runs.items() if run.slot == slot]:
                self.stop(ev.Stop(*key, save=True))
            self._ready.append(ev.SlotDown(slot, "its room is given back"))
        self._going = []
        return super().poll(timeout_s)

    def _slot_up(self) -> None:
        if not self._made:
            self.slots, self._going = list[str](), list[str]()
        self._up(f"c{len(self.slots)}")

    def _up(self, card: str) -> None:
        slot = f"{card}-{self._made}"
        self._made += 1
        self.slots.append(slot)
        self._ready.append(ev.SlotUp(slot, "node", "GPU", 1.0, gpu_id=card, most=self.most))

    def _at(self, time: float, run: Any, level: float | None = None) -> None:
        if run is not None and level is not None:
            beside = sum(each.startswith(run.slot.split("-")[0]) for each in self.slots)
            alone, together = self.curve(1), self.curve(beside)
            if together is None or beside > self.room(run.order.params):
                text = "CUDA out of memory"
                self._runs.pop(run.key, None)
                self._ready.append(ev.Failed(*run.key, ErrorKind.OUT_OF_MEMORY, text))
                return
            time = run.trained_until + (time - run.trained_until) * alone * beside / together
        super()._at(time, run, level)


def on_shared_cards(
    curve: Curve,
    cards: int = 1,
    history: History | None = None,
    losses: tuple[float, ...] = (),
    **changes: Any,
) -> Simulation:
    """A study on cards of which the curve is known."""
    changes = {"budget": {"trials": 200, "per_trial": {"epochs": 9}}, **changes}
    spec = spec_with(resources={"gpu": "share"}, **changes)
    simulation = Simulation(spec)
    if history is not None:
        simulation.study, simulation.history = brain(spec, history), history
    executor = SharedCards(Bowl(), trial_budget(spec), cards, losses=losses)
    executor.curve = curve
    simulation.executor = executor
    return simulation
