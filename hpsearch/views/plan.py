"""A study before it runs: its space and rungs, the most it can spend, the workers that fit, its
time, and the disk that its checkpoints will take."""

import math
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rich.console import RenderableType

from hpsearch.brain.retention import BEST, FRONT, WAITING, in_gb
from hpsearch.domain.facts import MOST_ON_A_GPU
from hpsearch.domain.numbers import NOTHING, count, duration, in_unit, number, pairs, size
from hpsearch.domain.paces import WORTH
from hpsearch.domain.plugins.door import offers_of
from hpsearch.domain.plugins.offers import LibraryPlugin
from hpsearch.search.time_left import HOW_EARLY, HOW_MANY, OTHERS, TimeLeft
from hpsearch.study_file.expressions.meaning import Expression
from hpsearch.study_file.levels import rung_levels, trial_budget
from hpsearch.study_file.methods import ETA, PROMOTION
from hpsearch.study_file.models import GB, PAIRS, Limit, Resources, StudySpec
from hpsearch.study_file.parameters import CategoricalParameter, Parameter
from hpsearch.study_file.types import AUTO, SHARE
from hpsearch.study_file.validation import shown
from hpsearch.views.terminal.tables import Width, table
from trials.checkpoints import folders
from trials.contract import ROUNDS, Unit
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND
from trials.descriptions.description import ASK

STARTING_S = 8.0
"""Seconds in which Ray and the first workers start; on a busy machine it is twice as long."""


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
    rows = _search(spec) | _limits(spec)
    if rungs := _rungs(spec):
        rows["rungs"] = rungs
        rows["at a rung"] = _at_rungs(spec, rehearsal)
    rows["full training"] = _full_training(spec, rehearsal, capacity)
    rows["workers"] = _workers(spec.resources, capacity)
    if "parameters" in rehearsal:
        rows["model"] = f"{rehearsal['parameters']:,.0f} parameters"
    if "step_seconds" in rehearsal:
        rows["one step"] = f"{duration(rehearsal['step_seconds'])} on the longest batch"
    if rehearsal.get("peak_memory_bytes"):
        rows["peak memory"] = f"{rehearsal['peak_memory_bytes'] / 2**30:.2f} GiB"
    checkpoint = checkpoint_of(rehearsal)
    if checkpoint is not None:
        rows["checkpoints"] = _disk(spec, checkpoint, workers_of(spec.resources, capacity))
    facts = table(("", ""), rows.items(), width)
    facts.show_header = False
    if not spec.space:
        return [facts]
    parameters = [(name, *_parameter(each)) for name, each in spec.space.items()]
    heads = ("parameter", "values", "scale", "only if")
    return [facts, table(heads, parameters, width, "\nspace")]


def _search(spec: StudySpec) -> dict[str, str]:
    per_trial = spec.budget.per_trial
    objectives = [f"{each.direction} {each.metric}" for each in spec.objectives]
    facts = {
        "study": spec.study,
        "task": str(spec.task["kind"]),
        "objective": ", ".join(objectives),
        **({} if spec.space else {"space": "what the objective asks for as it runs"}),
        "sampler": spec.search.sampler.kind,
        "pruner": spec.search.pruner.kind,
    }
    reports = count(len(trial_budget(spec).report_at), "report")
    one = per_trial.of_one
    of = f" of {in_unit(one.total, one.unit.value)}" if per_trial.unit in ROUNDS else ""
    facts["each trial"] = f"{in_unit(per_trial.total, per_trial.unit.value)}{of}, {reports}"
    if spec.requires:
        facts["requires"] = ", ".join(each.text for each in spec.requires)
    if spec.constraints:
        limits = [_limit(metric, limit) for metric, limit in spec.constraints.items()]
        facts["limits"] = ", ".join(limits)
    return facts


def _rungs(spec: StudySpec) -> str | None:
    """``at 1 and 3 of 9 epochs; one trial in 3 goes on from each at first``; None without rungs.
    More go on where a rung is found to foretell little."""
    pruner, per_trial = spec.search.pruner, spec.budget.per_trial
    levels = rung_levels(spec) if pruner.kind == PROMOTION else ()
    *before, last = [number(level) for level in levels if level < per_trial.total] or [""]
    if not last:
        return None
    named = f"{', '.join(before)} and {last}" if before else last
    each = "each" if before else "it"
    share = f"one trial in {pruner.arguments.get('eta', ETA)} goes on from {each}"
    how = f"{share} at first" if spec.search.warm_start is None else f"at least {share}"
    return f"at {named} of {in_unit(per_trial.total, per_trial.unit.value)}; {how}"


def _at_rungs(spec: StudySpec, measured: Mapping[str, float]) -> str:
    """What trials do at a rung that are not among the best there, and why."""
    wanted = spec.search.pruner.arguments.get("pause", AUTO)
    stopped = "the hopeless ones are stopped, others go on"
    if wanted != AUTO:
        return "others pause, as the file says" if wanted else f"{stopped}, as the file says"
    if not measured.get("keeps_state", True):
        return f"{stopped}, and none pauses: {_why_nothing_is_kept(spec)}"
    pace, start_s = pace_of(spec, measured), measured.get("start_up_seconds", 0.0)
    levels = [*rung_levels(spec)]
    if pace is None or not start_s:
        return f"others pause if another start is cheap, else {stopped}"
    again = f"another start takes {duration(start_s)}"
    paying = [low for low, up in pairwise(levels) if start_s <= WORTH * (up - low) * pace]
    if not paying:
        return f"{stopped}, and none pauses: {again}, too long beside the training to the next rung"
    if len(paying) == len(levels) - 1:
        return f"others pause, and go on when their turn comes: {again}"
    named = " and ".join(map(number, paying))
    return f"others pause at {named}; elsewhere {again}, too long, and {stopped}"


def _why_nothing_is_kept(spec: StudySpec) -> str:
    task = spec.task
    run = str(task.get("run")).replace("{{", "")
    if task["kind"] == COMMAND.kind and "{folder}" not in run:
        return "the command does not use {folder}, so it cannot find what it has trained"
    library = offers_of(LibraryPlugin).get(task.get("library", ""))
    if library is not None and not library.keeps:
        return f"code for {library.name} begins again"
    return "by its first report, the trial had kept nothing to go on from"


def _limit(metric: str, limit: Limit) -> str:
    low = "" if limit.min is None else f"{number(limit.min)} <= "
    high = "" if limit.max is None else f" <= {number(limit.max)}"
    return f"{low}{metric}{high}"


def _limits(spec: StudySpec) -> dict[str, str]:
    """The most the study can spend: whichever limit is reached first ends it."""
    budget, search, facts = spec.budget, spec.search, {}
    if budget.trials is not None:
        total, unit = budget.trials * budget.per_trial.total, budget.per_trial.unit
        each = in_unit(budget.per_trial.total, unit.value)
        in_all = duration(total) if unit is Unit.SECONDS else in_unit(total, unit.value)
        facts["at most"] = f"{count(budget.trials, 'trial')} of {each} = {in_all}"
    if budget.gpu_hours is not None:
        facts["compute time"] = f"at most {in_unit(budget.gpu_hours, 'hours')}"
    if budget.cost is not None:
        prices = budget.cost_per_gpu_hour
        rate = pairs(prices) if isinstance(prices, dict) else number(prices)
        facts["cost"] = f"at most {number(budget.cost)}, at {rate} per GPU hour"
    if budget.wall_clock_s is not None:
        facts["wall clock"] = f"at most {duration(budget.wall_clock_s)}"
    if budget.target is not None:
        facts["target"] = f"ends at {spec.objective.metric} {number(budget.target)}"
    if search.confirm is not None:
        runs = count(search.confirm.seeds, "run")
        facts["confirmation"] = f"{runs} of each of the best {search.confirm.top}"
    if search.level is not None:
        runs = f"{PAIRS} runs each of the best trial and of the defaults"
        facts["certificate"] = f"up to {runs}, until {number(100 * search.level)}% are reached"
    return facts


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
    may_have = isinstance(spec.resources.gpu, str) and (capacity is None or capacity.gpus)
    if gpus or may_have:
        alone = " alone on a GPU" if spec.resources.gpu == SHARE else ""
        parts.append(in_unit(hours, "GPU hours") + alone)
    elif budget.gpu_hours is not None:
        parts.append(f"{in_unit(hours, 'hours')} of compute time")
    prices = budget.cost_per_gpu_hour
    if prices is not None:
        known = prices.values() if isinstance(prices, dict) else [prices]
        ends = dict.fromkeys(number(hours * price) for price in (min(known), max(known)))
        parts.append(f"a cost of {' to '.join(ends)}")
    return ", ".join(parts)


def pace_of(spec: StudySpec, measured: Mapping[str, float], key: str = "pace") -> float | None:
    """Seconds that one worker trains for a unit of the budget, or by `key` the least or most."""
    unit = spec.budget.per_trial.unit
    if unit is Unit.SECONDS:
        return 1.0
    if "ended_after_s" in measured:  # the program has ended by itself, with all that it does then
        trained_s = measured["ended_after_s"] - measured.get("start_up_seconds", 0.0)
        own = measured["own_pace"]
        relative = measured[key] / own if own else 1.0
        return relative * max(0.0, trained_s) / spec.budget.per_trial.total
    if key in measured:
        return measured[key]
    if "reported_at" in measured:
        return measured["reported_after_s"] / measured["reported_at"]
    return measured.get("step_seconds") if unit is Unit.STEPS else None


def fitting_workers(resources: Resources, capacity: Capacity) -> int:
    """The number of workers that fit on a machine, by its cores and GPU shares; 0 if none does."""
    by_cores = int(capacity.cpus / resources.cpu + 1e-9) // resources.processes
    share = min(1, capacity.gpus) if isinstance(resources.gpu, str) else resources.gpu
    if share == 0:
        return by_cores
    if share > 1:
        by_gpus = int(capacity.gpus / share)
    else:
        workers_per_gpu = int(1 / share + 1e-9)
        by_gpus = capacity.gpus * workers_per_gpu
    return min(by_cores, by_gpus // resources.processes)


def workers_of(resources: Resources, capacity: Capacity | None) -> int:
    """The number of trials that run side by side, as far as it is known; at least one."""
    if resources.workers != "auto":
        return resources.workers
    return 1 if capacity is None else max(1, fitting_workers(resources, capacity))


def _workers(resources: Resources, capacity: Capacity | None) -> str:
    wanted = "as many as fit" if resources.workers == "auto" else str(resources.workers)
    if resources.gpu == SHARE and (capacity is None or capacity.gpus):
        return _sharing(resources, capacity)
    if capacity is None:
        return f"{wanted}, on the cluster"
    fitting = fitting_workers(resources, capacity)
    fit = f"{fitting or 'none'} {'fits' if fitting < 2 else 'fit'}"
    has = f"{count(capacity.cpus, 'core')}, {count(capacity.gpus, 'GPU')}"
    return f"{wanted}; {fit} on this machine ({has})"


def _sharing(resources: Resources, capacity: Capacity | None) -> str:
    rule = "one on each GPU at first, then as many as train more together"
    most, why = MOST_ON_A_GPU, ""
    if isinstance(resources.workers, int) and resources.workers <= most:
        most, why = resources.workers, f" ({count(resources.workers, 'worker')} in all)"
    if capacity is None:
        return f"{rule}: at most {most}{why}, on the cluster"
    cores = max(1, int(capacity.cpus / capacity.gpus / resources.cpu))
    if cores < most:
        most = cores
        why = f" ({count(capacity.cpus, 'core')} for {count(capacity.gpus, 'GPU')})"
    return f"{rule}: at most {most}{why}"


def _parameter(parameter: Parameter) -> tuple[str, str, str]:
    condition = NOTHING
    if isinstance(parameter.when, Expression):
        condition = parameter.when.text
    elif parameter.when:
        allowed = {name: map(shown, values) for name, values in parameter.when.items()}
        condition = ", ".join(f"{name} is {' or '.join(some)}" for name, some in allowed.items())
    if isinstance(parameter, CategoricalParameter):
        return ", ".join(map(shown, parameter.choices)), NOTHING, condition
    values = f"{shown(parameter.low)} to {shown(parameter.high)}"
    if isinstance(parameter.low, int):
        values += ", whole"
    if parameter.step not in (None, 1):
        values += f", step {parameter.step:g}"
    return values, "logarithmic" if parameter.log else "linear", condition


def sentence(
    spec: StudySpec, measured: Mapping[str, float], workers: int, capacity: Capacity | None = None
) -> str:
    """The time and disk that the study will take with these workers, and the basis of the estimate:
    the measurements of a step and a first report. Of a cluster the capacity is None."""
    on = f"on {count(workers, 'worker')}"
    checkpoint = checkpoint_of(measured)
    if checkpoint is not None:
        on += f", at most {size(round(peak_bytes(spec, checkpoint, workers)))} of checkpoints"
    pace = pace_of(spec, measured)
    start_up_s = measured.get("start_up_seconds", 0.0)
    prices = spec.budget.cost_per_gpu_hour
    cheapest = min(prices, key=lambda name: prices[name]) if isinstance(prices, dict) else None
    time_left = TimeLeft(spec, (), [cheapest] * workers)
    keeps = bool(measured.get("keeps_state", True))
    work_s, limit_s = time_left.in_all_s(pace or 0.0, start_up_s, keeps)
    if limit_s is None and (pace is None or work_s is None):
        why = "no report has arrived" if pace is None else "its number of trials is not limited"
        return f"how long the study will take is not known: {why}"
    if pace is None or work_s is None:
        return f"the study will take at most {duration(limit_s)} {on}: its budget ends it"
    # The trial that was measured ran alone: together they may want more cores than there are.
    busy = workers * measured.get("cores", 0.0)
    slower = 1.0 if capacity is None else max(1.0, busy / capacity.cpus)
    before_s = measured.get("process_seconds", 0.0) + STARTING_S
    low_s, high_s = between_s(spec, measured, time_left, work_s)
    low_s = before_s - STARTING_S + (0.0 if spec.budget.target is not None else low_s)
    high_s = before_s + STARTING_S + slower * high_s
    about_s = before_s + slower * work_s
    if limit_s is not None and limit_s < about_s:
        return f"the study will take at most {duration(limit_s)} {on}: its budget ends it"
    if limit_s is not None:
        high_s = min(high_s, limit_s)
    between = f"between {duration(low_s)} and {duration(high_s)}"
    about = "about" if spec.budget.target is None else "at most about"
    said = f"the study will take {about} {duration(about_s)} {on}, {between}"
    return f"{said}: {_basis(spec, measured)}; {_depends(spec, measured, slower)}"


def between_s(
    spec: StudySpec, measured: Mapping[str, float], time_left: TimeLeft, work_s: float
) -> tuple[float, float]:
    """The least and the most seconds that an estimate of all work means, nine times in ten: half
    way between the pace that was expected and the fastest and slowest that were seen."""
    paces = [pace_of(spec, measured, key) or 0.0 for key in ("least_pace", "pace", "most_pace")]
    least, pace, most = (math.log(max(each, 1e-12)) for each in paces)
    spread = time_left.spread(work_s)
    low, high = (math.hypot(spread, (each - pace) / 2) for each in (least, most))
    return work_s / math.exp(low), work_s * math.exp(high)


def _basis(spec: StudySpec, measured: Mapping[str, float]) -> str:
    trials, per_trial = count(spec.budget.trials or 0, "trial"), spec.budget.per_trial
    total = in_unit(per_trial.total, per_trial.unit.value)
    if "reported_at" not in measured:
        return f"{trials} of {total}"
    took, at = duration(measured["reported_after_s"]), number(measured["reported_at"])
    start_s = measured.get("start_up_seconds", 0.0)
    others = (
        "" if measured.get("own_pace") == measured.get("pace") else " and others that were tried"
    )
    basis = f"{trials} as fast as this one{others}, which took {took} to {at} of {total}"
    return f"{basis}, of which {duration(start_s)} were its start" if start_s else basis


def _depends(spec: StudySpec, measured: Mapping[str, float], slower: float) -> str:
    """The facts on which the time depends, and that a first trial does not tell."""
    is_end_unseen = "ended_after_s" not in measured and spec.task["kind"] not in BUILT_IN
    reasons = {
        HOW_MANY: spec.search.pruner.kind != "none",
        HOW_EARLY: bool(spec.task.get("ends_early", False)),
        "when its target is reached": spec.budget.target is not None,
        "what a trial does after its last report": is_end_unseen,
        f"how far trials side by side slow each other, here {slower:.1f} times": slower > 1,
        OTHERS: True,
    }
    *before, last = [reason for reason, holds in reasons.items() if holds]
    return f"it depends on {', '.join(before)} and {last}" if before else f"it depends on {last}"


KEPT_WHOLE = 2  # the setting `keep_checkpoints` where a study file does not give it
ON_THE_WAY = 2
"""Further checkpoints of a running trial: one not recorded yet, and one being written."""


@dataclass(frozen=True)
class CheckpointSize:
    """The bytes that one checkpoint takes, and the model's weights in it."""

    whole_bytes: float
    weights_bytes: float


def checkpoint_of(rehearsal: Mapping[str, float]) -> CheckpointSize | None:
    if "checkpoint_bytes" not in rehearsal:
        return None
    return CheckpointSize(rehearsal["checkpoint_bytes"], rehearsal["weights_bytes"])


def running_bytes(spec: StudySpec, one: CheckpointSize, workers: int) -> float:
    kept = int(spec.settings.get("keep_checkpoints", KEPT_WHOLE)) + ON_THE_WAY
    return workers * (kept * one.whole_bytes + one.weights_bytes)


def peak_bytes(spec: StudySpec, one: CheckpointSize, workers: int) -> float:
    """The most that all checkpoints of a study take: of running, waiting and ended trials."""
    trials, confirm = spec.budget.trials, spec.search.confirm
    if trials is None:
        trials = WAITING + BEST
    waiting = min(WAITING, trials) if spec.search.pruner.kind == PROMOTION else 0
    best = BEST if confirm is None else max(BEST, confirm.top)
    ended = min(FRONT if len(spec.objectives) > 1 else best, trials - waiting)
    running = running_bytes(spec, one, workers)
    total = running + waiting * one.whole_bytes + (waiting + ended) * one.weights_bytes
    limit = spec.checkpoints.max_gb
    return total if limit is None else max(running, min(total, limit * GB))


def _disk(spec: StudySpec, one: CheckpointSize, workers: int) -> str:
    peak = size(round(peak_bytes(spec, one, workers)))
    whole, weights = size(round(one.whole_bytes)), size(round(one.weights_bytes))
    each = f"{whole} each, of which {weights} are weights"
    return f"at most {peak} with {count(workers, 'worker')}; {each}"


def checkpoint_warnings(
    spec: StudySpec, one: CheckpointSize, workers: int, folder: str
) -> Iterator[str]:
    """Warnings about checkpoints before the study starts, with remedies. The folder may be a URL,
    behind which the free space is not known."""
    running, peak = running_bytes(spec, one, workers), peak_bytes(spec, one, workers)
    limit = spec.checkpoints.max_gb
    if limit is not None and running > limit * GB:
        yield (
            f"checkpoints.max_gb: {limit:g} GB is less than the {in_gb(running)} "
            "that running trials take, which are always kept; "
            "raise the limit, or lower resources.workers"
        )
    if folders.is_url(folder):
        return
    existing = next(path for path in (Path(folder), *Path(folder).parents) if path.is_dir())
    free = shutil.disk_usage(existing).free
    if peak > free:
        yield (
            f"checkpoints may take {in_gb(peak)}, and {folder} has {in_gb(free)} left: "
            "choose another folder with --checkpoints, or a limit with checkpoints: {max_gb: ...}"
        )
