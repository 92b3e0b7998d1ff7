"""What a study would do, before it does it: its space, its rungs, the most it can spend, and the workers that fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import RenderableType

from hpsearch.levels import PROMOTION, rung_levels, step_scale, trial_budget
from hpsearch.spec import CategoricalParameter, Limit, Parameter, Resources, StudySpec
from hpsearch.spec_types import shown
from hpsearch.views.numbers import NOTHING, count, duration, number
from hpsearch.views.tables import table
from trials.contract import Unit


@dataclass(frozen=True)
class Machine:
    """What the local machine has."""

    cpus: int
    gpus: int


def plan(
    spec: StudySpec, rehearsal: Mapping[str, float], machine: Machine | None, width: int | None
) -> list[RenderableType]:
    """A study's plan as tables.

    Args:
        spec: The study file.
        rehearsal: What one step measured, as `trials.contract.Task.rehearse` returns it.
        machine: Where it would run; None for a cluster that is not known yet.
        width: Columns of the terminal; None where the output goes elsewhere.
    """
    facts = table("", "", width=width)
    facts.show_header = False
    for name, text in (_what(spec) | _limits(spec, rehearsal) | _where(spec, rehearsal, machine)).items():
        facts.add_row(name, text)
    parameters = table("parameter", "values", "scale", "only when", width=width, title="\nspace")
    for name, parameter in spec.space.items():
        parameters.add_row(name, *_parameter(parameter))
    return [facts, parameters]


def fitting_workers(resources: Resources, machine: Machine) -> int:
    """How many workers a machine has room for: as many as its cores and GPU shares allow, 0 if not one fits."""
    by_cores = int(machine.cpus / resources.cpu + 1e-9)
    share = min(1, machine.gpus) if resources.gpu == "auto" else float(resources.gpu)
    if share == 0:
        return by_cores
    by_gpus = machine.gpus * int(1 / share + 1e-9) if share <= 1 else int(machine.gpus / share)
    return min(by_cores, by_gpus)


def _what(spec: StudySpec) -> dict[str, str]:
    per_trial, pruner = spec.budget.per_trial, spec.search.pruner
    levels = trial_budget(spec).report_at
    facts = {
        "study": spec.study,
        "task": str(spec.task["kind"]),
        "objective": ", ".join(f"{objective.direction} {objective.metric}" for objective in spec.objectives),
        "sampler": spec.search.sampler.kind,
        "pruner": pruner.kind,
        "a trial": f"{number(per_trial.total)} {per_trial.unit.value}, {count(len(levels), 'report')}",
    }
    if spec.constraints:
        facts["limits"] = ", ".join(_limit(metric, limit) for metric, limit in spec.constraints.items())
    if pruner.kind == PROMOTION:
        facts["rungs"] = f"{', '.join(map(number, rung_levels(spec)))} {per_trial.unit.value}"
    if (scale := step_scale(spec)) != 1:
        facts["Optuna steps"] = f"{per_trial.unit.value} times {scale}, since Optuna counts in whole steps"
    return facts


def _limit(metric: str, limit: Limit) -> str:
    low = "" if limit.min is None else f"{number(limit.min)} <= "
    high = "" if limit.max is None else f" <= {number(limit.max)}"
    return f"{low}{metric}{high}"


def _limits(spec: StudySpec, rehearsal: Mapping[str, float]) -> dict[str, str]:
    """The most the study can spend: whichever limit is reached first ends it."""
    budget, per_trial = spec.budget, spec.budget.per_trial
    facts = {}
    if budget.trials is not None:
        total = budget.trials * per_trial.total
        work = f"{count(budget.trials, 'trial')} of {number(per_trial.total)} {per_trial.unit.value}"
        facts["at most"] = f"{work} = {number(total)} {per_trial.unit.value}{_time(total, per_trial.unit, rehearsal)}"
    if budget.gpu_hours is not None:
        facts["GPU time"] = f"at most {number(budget.gpu_hours)} hours"
    if budget.cost is not None:
        facts["cost"] = f"at most {number(budget.cost)}, at {number(budget.cost_per_gpu_hour)} a GPU hour"
    if budget.wall_clock_s is not None:
        facts["wall clock"] = f"at most {duration(budget.wall_clock_s)}"
    if budget.target is not None:
        facts["target"] = f"ends at {spec.objective.metric} {number(budget.target)}"
    if (confirm := spec.search.confirm) is not None:
        facts["confirmation"] = f"{count(confirm.seeds, 'run')} of each of the best {confirm.top}"
    return facts


def _time(total: float, unit: Unit, rehearsal: Mapping[str, float]) -> str:
    """How long training takes in all on one worker, where the unit lets it be told."""
    if unit is Unit.SECONDS:
        return f" ({duration(total)})"
    if unit is Unit.STEPS and "step_seconds" in rehearsal:
        return f" (about {duration(total * rehearsal['step_seconds'])} on one worker, at the longest batch)"
    return ""


def _where(spec: StudySpec, rehearsal: Mapping[str, float], machine: Machine | None) -> dict[str, str]:
    facts = {"workers": _workers(spec.resources, machine)}
    if "parameters" in rehearsal:
        facts["model"] = f"{rehearsal['parameters']:,.0f} parameters"
    if "step_seconds" in rehearsal:
        facts["one step"] = f"{duration(rehearsal['step_seconds'])} on the longest batch"
    if "evaluation_seconds" in rehearsal:
        facts["one evaluation step"] = duration(rehearsal["evaluation_seconds"])
    if rehearsal.get("peak_memory_bytes"):
        facts["peak memory"] = f"{rehearsal['peak_memory_bytes'] / 2**30:.2f} GiB"
    return facts


def _workers(resources: Resources, machine: Machine | None) -> str:
    wanted = "as many as fit" if resources.workers == "auto" else str(resources.workers)
    if machine is None:
        return f"{wanted}, on the cluster"
    fitting = fitting_workers(resources, machine)
    has = f"{count(machine.cpus, 'core')}, {count(machine.gpus, 'GPU')}"
    room = "not one fits" if fitting == 0 else f"{fitting} fit" + ("s" if fitting == 1 else "")
    return f"{wanted}; {room} on this machine ({has})"


def _parameter(parameter: Parameter) -> tuple[str, str, str]:
    """Values, scale and condition."""
    when = ", ".join(
        f"{parent} is {' or '.join(map(shown, values))}" for parent, values in (parameter.when or {}).items()
    )
    if isinstance(parameter, CategoricalParameter):
        return ", ".join(map(shown, parameter.choices)), NOTHING, when or NOTHING
    grid = "" if parameter.step in (None, 1) else f", step {parameter.step:g}"
    whole = ", whole" if isinstance(parameter.low, int) else ""
    values = f"{shown(parameter.low)} to {shown(parameter.high)}{whole}{grid}"
    return values, "logarithmic" if parameter.log else "linear", when or NOTHING
