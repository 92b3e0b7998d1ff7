"""A study's plan: space, rungs, the most it can spend, the workers that fit, its time and disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import RenderableType

from hpsearch.domain.numbers import NOTHING, count, duration, number, pairs, size
from hpsearch.search.time_left import TimeLeft
from hpsearch.study_file.expressions.meaning import Expression
from hpsearch.study_file.levels import rung_levels, trial_budget
from hpsearch.study_file.methods import ETA, PROMOTION
from hpsearch.study_file.models import Limit, PerTrial, Resources, StudySpec
from hpsearch.study_file.parameters import CategoricalParameter, Parameter
from hpsearch.study_file.validation import shown
from hpsearch.views.forecast import footprint
from hpsearch.views.terminal.tables import Width, table
from trials.contract import Unit
from trials.descriptions.description import ASK


@dataclass(frozen=True)
class Capacity:
    """The room for workers on this machine."""

    cpus: int
    gpus: int


def plan(
    spec: StudySpec, rehearsal: Mapping[str, float], capacity: Capacity | None, width: Width
) -> list[RenderableType]:
    """A study's plan as tables, by the measurements of one step (`trials.contract.Rehearsed`) and
    the capacity of this machine; None if the study runs on a cluster."""
    facts = table("", "", width=width)
    facts.show_header = False
    rows = {
        **_search(spec),
        **_limits(spec),
        "full training": _full_training(spec, rehearsal, capacity),
        **_machine(spec, rehearsal, capacity),
        **_disk(spec, rehearsal, capacity),
    }
    for name, text in rows.items():
        facts.add_row(name, text)
    parameters = table("parameter", "values", "scale", "only if", width=width, title="\nspace")
    for name, parameter in spec.space.items():
        parameters.add_row(name, *_parameter(parameter))
    return [facts, parameters] if spec.space else [facts]


def fitting_workers(resources: Resources, capacity: Capacity) -> int:
    """The number of workers that fit on a machine, by its cores and GPU shares; 0 if none does."""
    by_cores = int(capacity.cpus / resources.cpu + 1e-9) // resources.processes
    share = min(1, capacity.gpus) if resources.gpu == "auto" else float(resources.gpu)
    if share == 0:
        return by_cores
    if share > 1:
        by_gpus = int(capacity.gpus / share)
    else:
        workers_per_gpu = int(1 / share + 1e-9)
        by_gpus = capacity.gpus * workers_per_gpu
    return min(by_cores, by_gpus // resources.processes)


def _search(spec: StudySpec) -> dict[str, str]:
    per_trial, pruner = spec.budget.per_trial, spec.search.pruner
    unit = per_trial.unit.value
    objectives = [f"{each.direction} {each.metric}" for each in spec.objectives]
    reports = count(len(trial_budget(spec).report_at), "report")
    facts = {
        "study": spec.study,
        "task": str(spec.task["kind"]),
        "objective": ", ".join(objectives),
        **({} if spec.space else {"space": "what the objective asks for as it runs"}),
        "sampler": spec.search.sampler.kind,
        "pruner": pruner.kind,
        "each trial": f"{number(per_trial.total)} {unit}, {reports}",
    }
    if spec.requires:
        facts["requires"] = ", ".join(each.text for each in spec.requires)
    if spec.constraints:
        limits = [_limit(metric, limit) for metric, limit in spec.constraints.items()]
        facts["limits"] = ", ".join(limits)
    if rungs := _rungs(spec):
        facts["rungs"] = rungs
    return facts


def _rungs(spec: StudySpec) -> str | None:
    """``at 1 and 3 of 9 epochs; one trial in 3 goes on from each at first``; None without rungs.

    More go on where a rung is found to foretell little, or is known to by earlier studies.
    """
    pruner, per_trial = spec.search.pruner, spec.budget.per_trial
    levels = rung_levels(spec) if pruner.kind == PROMOTION else ()
    *before, last = [number(level) for level in levels if level < per_trial.total] or [""]
    if not last:
        return None
    named = f"{', '.join(before)} and {last}" if before else last
    each = "each" if before else "it"
    share = f"one trial in {pruner.arguments.get('eta', ETA)} goes on from {each}"
    how = f"{share} at first" if spec.search.warm_start is None else f"at least {share}"
    return f"at {named} of {number(per_trial.total)} {per_trial.unit.value}; {how}"


def _limit(metric: str, limit: Limit) -> str:
    low = "" if limit.min is None else f"{number(limit.min)} <= "
    high = "" if limit.max is None else f" <= {number(limit.max)}"
    return f"{low}{metric}{high}"


def _limits(spec: StudySpec) -> dict[str, str]:
    """The most the study can spend: whichever limit is reached first ends it."""
    budget = spec.budget
    facts = {}
    if budget.trials is not None:
        facts["at most"] = _work(budget.trials, budget.per_trial)
    if budget.gpu_hours is not None:
        facts["compute time"] = f"at most {number(budget.gpu_hours)} hours"
    if budget.cost is not None:
        prices = budget.cost_per_gpu_hour
        rate = pairs(prices) if isinstance(prices, dict) else number(prices)
        facts["cost"] = f"at most {number(budget.cost)}, at {rate} per GPU hour"
    if budget.wall_clock_s is not None:
        facts["wall clock"] = f"at most {duration(budget.wall_clock_s)}"
    if budget.target is not None:
        facts["target"] = f"ends at {spec.objective.metric} {number(budget.target)}"
    confirm = spec.search.confirm
    if confirm is not None:
        runs = count(confirm.seeds, "run")
        facts["confirmation"] = f"{runs} of each of the best {confirm.top}"
    return facts


def _work(trials: int, per_trial: PerTrial) -> str:
    """All trials in full: ``20 trials of 3 epochs = 60 epochs``."""
    total, unit = trials * per_trial.total, per_trial.unit
    each = f"{number(per_trial.total)} {unit.value}"
    in_all = duration(total) if unit is Unit.SECONDS else f"{number(total)} {unit.value}"
    return f"{count(trials, 'trial')} of {each} = {in_all}"


def pace_of(spec: StudySpec, measured: Mapping[str, float]) -> float | None:
    """Seconds that one worker trains for one unit of the budget; None if it is not known."""
    unit = spec.budget.per_trial.unit
    if unit is Unit.SECONDS:
        return 1.0
    if "reported_at" in measured:
        return measured["reported_after_s"] / measured["reported_at"]
    return measured.get("step_seconds") if unit is Unit.STEPS else None


def _full_training(
    spec: StudySpec, measured: Mapping[str, float], capacity: Capacity | None
) -> str:
    """The time and money of one full training, or what it would take to know them."""
    pace, budget = pace_of(spec, measured), spec.budget
    if pace is None and spec.task["kind"] == ASK.kind:
        return "its time is not known: a trial that was asked for must report first"
    if pace is None:
        return "its time is not known: a first report would tell, and none has arrived"
    seconds = budget.per_trial.total * pace + measured.get("start_up_seconds", 0.0)
    parts = [f"about {duration(seconds)}"]
    gpus = spec.resources.stated_gpus
    hours = seconds / 3600 * (gpus or 1.0)
    may_have = spec.resources.gpu == "auto" and (capacity is None or capacity.gpus)
    if gpus or may_have:
        parts.append(f"{number(hours)} GPU hours")
    elif budget.gpu_hours is not None:
        parts.append(f"{number(hours)} hours of compute time")
    prices = budget.cost_per_gpu_hour
    if prices is not None:
        each = sorted(prices.values()) if isinstance(prices, dict) else [prices]
        ends = dict.fromkeys(number(hours * price) for price in (each[0], each[-1]))
        parts.append(f"a cost of {' to '.join(ends)}")
    return ", ".join(parts)


def _machine(
    spec: StudySpec, rehearsal: Mapping[str, float], capacity: Capacity | None
) -> dict[str, str]:
    facts = {"workers": _workers(spec.resources, capacity)}
    if "parameters" in rehearsal:
        facts["model"] = f"{rehearsal['parameters']:,.0f} parameters"
    if "step_seconds" in rehearsal:
        facts["one step"] = f"{duration(rehearsal['step_seconds'])} on the longest batch"
    if rehearsal.get("peak_memory_bytes"):
        facts["peak memory"] = f"{rehearsal['peak_memory_bytes'] / 2**30:.2f} GiB"
    return facts


def _disk(
    spec: StudySpec, rehearsal: Mapping[str, float], capacity: Capacity | None
) -> dict[str, str]:
    checkpoint = checkpoint_of(rehearsal)
    if checkpoint is None:
        return {}
    workers = workers_of(spec.resources, capacity)
    peak = size(round(footprint.peak_bytes(spec, checkpoint, workers)))
    whole, weights = size(round(checkpoint.whole_bytes)), size(round(checkpoint.weights_bytes))
    each = f"{whole} each, of which {weights} are weights"
    return {"checkpoints": f"at most {peak} with {count(workers, 'worker')}; {each}"}


def checkpoint_of(rehearsal: Mapping[str, float]) -> footprint.CheckpointSize | None:
    """The size of a checkpoint; None if the rehearsal did not measure it."""
    if "checkpoint_bytes" not in rehearsal:
        return None
    return footprint.CheckpointSize(rehearsal["checkpoint_bytes"], rehearsal["weights_bytes"])


def workers_of(resources: Resources, capacity: Capacity | None) -> int:
    """The number of trials that run side by side, as far as it is known; at least one."""
    if resources.workers != "auto":
        return resources.workers
    return 1 if capacity is None else max(1, fitting_workers(resources, capacity))


def _workers(resources: Resources, capacity: Capacity | None) -> str:
    wanted = "as many as fit" if resources.workers == "auto" else str(resources.workers)
    if capacity is None:
        return f"{wanted}, on the cluster"
    fitting = fitting_workers(resources, capacity) or "none"
    verb = "fit" if fitting not in (1, "none") else "fits"
    has = f"{count(capacity.cpus, 'core')}, {count(capacity.gpus, 'GPU')}"
    return f"{wanted}; {fitting} {verb} on this machine ({has})"


def _parameter(parameter: Parameter) -> tuple[str, str, str]:
    condition = _condition(parameter)
    if isinstance(parameter, CategoricalParameter):
        return ", ".join(map(shown, parameter.choices)), NOTHING, condition
    values = f"{shown(parameter.low)} to {shown(parameter.high)}"
    if isinstance(parameter.low, int):
        values += ", whole"
    if parameter.step not in (None, 1):
        values += f", step {parameter.step:g}"
    scale = "logarithmic" if parameter.log else "linear"
    return values, scale, condition


def _condition(parameter: Parameter) -> str:
    if not parameter.when:
        return NOTHING
    if isinstance(parameter.when, Expression):
        return parameter.when.text
    parts = []
    for parent, values in parameter.when.items():
        allowed = " or ".join(map(shown, values))
        parts.append(f"{parent} is {allowed}")
    return ", ".join(parts)


def sentence(spec: StudySpec, measured: Mapping[str, float], workers: int) -> str:
    """The time and disk that the study will take, and the basis of the estimate.

    Args:
        measured: The measurements of a step and of a first report, as `hpsearch check` has them.
        workers: The number of trials that run side by side.
    """
    on = f"on {count(workers, 'worker')}"
    disk = _most_disk(spec, measured, workers)
    pace = pace_of(spec, measured)
    start_up_s = measured.get("start_up_seconds", 0.0)
    prices = spec.budget.cost_per_gpu_hour
    cheapest = min(prices, key=lambda name: prices[name]) if isinstance(prices, dict) else None
    work_s, limit_s = TimeLeft(spec, (), [cheapest] * workers).in_all_s(pace or 0.0, start_up_s)
    if limit_s is not None and (pace is None or work_s is None or limit_s < work_s):
        return f"the study will take at most {duration(limit_s)} {on}{disk}: its budget ends it"
    if pace is None:
        return "how long the study will take is not known: no report has arrived"
    if work_s is None:
        return "how long the study will take is not known: its number of trials is not limited"
    total_s = measured.get("process_seconds", 0.0) + work_s
    about = "about" if _is_expected(spec) else "at most about"
    return f"the study will take {about} {duration(total_s)} {on}{disk}: {_basis(spec, measured)}"


def _is_expected(spec: StudySpec) -> bool:
    """True if the number of trials that train in full is known beforehand."""
    ends_early = spec.task.get("ends_early", False) or spec.budget.target is not None
    return spec.search.pruner.kind in (PROMOTION, "none") and not ends_early


def _most_disk(spec: StudySpec, measured: Mapping[str, float], workers: int) -> str:
    checkpoint = checkpoint_of(measured)
    if checkpoint is None:
        return ""
    peak = round(footprint.peak_bytes(spec, checkpoint, workers))
    return f", at most {size(peak)} of checkpoints"


def _basis(spec: StudySpec, measured: Mapping[str, float]) -> str:
    trials = count(spec.budget.trials or 0, "trial")
    per_trial = spec.budget.per_trial
    unit = per_trial.unit.value
    if "reported_at" in measured:
        at = f"{number(measured['reported_at'])} of {number(per_trial.total)} {unit}"
        took = duration(measured["reported_after_s"])
        return f"{trials} as fast as this one, which took {took} to {at}"
    return f"{trials} of {number(per_trial.total)} {unit}"
