"""Simulated clusters whose slots are of two kinds, of which one trains more slowly."""

from typing import Any

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.domain import events as ev
from hpsearch.study_file.levels import trial_budget
from support.studies.small import Bowl, Simulation, spec_with

FAST, SLOW = "NVIDIA A100-SXM4-80GB", "Tesla T4"
TIMES_SLOWER = 3.0


class Alike(Bowl):
    """Curves of configurations that all train equally fast."""

    def seconds(self, params: Any, resource: float) -> float:
        return resource * self.seconds_per_unit


class TwoKinds(SimulatedExecutor):
    """Slots that are fast and slow in turn."""

    def _slot_up(self) -> None:
        device = (FAST, SLOW)[self._made % 2]
        self._ready.append(ev.SlotUp(f"s{self._made}", "simulated", device, self._gpus))
        self._made += 1

    def _at(self, time: float, run: Any, level: float | None = None) -> None:
        is_slow = run is not None and int(run.slot.removeprefix("s")) % 2 == 1
        if is_slow:
            time = run.trained_until + (time - run.trained_until) * TIMES_SLOWER
        super()._at(time, run, level)


def on_two_kinds(budget: dict[str, Any], workers: int = 2, **more: Any) -> Simulation:
    """A study on slots of two kinds."""
    search = more.pop("search", {"sampler": "random"})
    spec = spec_with(budget={"per_trial": {"epochs": 9}, **budget}, search=search, **more)
    simulation = Simulation(spec)
    simulation.executor = TwoKinds(Alike(), trial_budget(spec), workers)
    return simulation
