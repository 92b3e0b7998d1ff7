"""The study file of a Tuner, and lines on what could not be carried over.

Nothing is pickled into a study, so nothing is unpickled: its trainable is named by its module and
its own name. A study that is resumed months later, from another process, imports the same file
again. A trainable of the script that is run is therefore imported under the script's own name.
"""

import datetime
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from ray.tune import RunConfig, TuneConfig
from ray.tune.schedulers import ASHAScheduler

from hpsearch.errors import SpecError, UserError
from hpsearch.plugins.ray_tune.adapting import WrappedTrainable, unwrapped
from hpsearch.plugins.ray_tune.space import ReadSpace, is_plain, read_space
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.reading import parse
from trials.checkpoints.folders import is_url

DATABASE = "hpsearch.db"
"""In the storage path: the database of its studies, unless HPSEARCH_STORAGE names another."""
ITERATION = "training_iteration"
REPORTS = 100  # a trial has at most about so many levels at which a class is saved
LEAST_ETA = 2  # the smallest reduction factor that promotion knows
DIRECTIONS = {"min": "minimize", "max": "maximize"}
STOP = f'tune.RunConfig(stop={{"{ITERATION}": n}})'
MAIN = "__main__"
TOP = "define it at the top level of a module"


@dataclass(frozen=True)
class Located:
    """A trainable as a study file names it: ``module:name``, and arguments beside its config."""

    kind: str
    base: Path
    noted: Mapping[str, Any]
    resources: Mapping[str, float]


def locate(trainable: Any, tuples: list[str]) -> Located:
    """Find a trainable, which may be wrapped, as its workers will; choices of the parameters
    `tuples` hold tuples. Raises UserError if workers could not import it or what it is given."""
    if isinstance(trainable, str) or not (
        callable(trainable) or isinstance(trainable, WrappedTrainable)
    ):
        what = f"tune.Tuner cannot train {trainable!r}"
        raise UserError(what, "give a function of one argument, or a subclass of tune.Trainable")
    wrapped = unwrapped(trainable)
    module = _module_of(wrapped.inner)
    name = _name_in(module, wrapped.inner)
    plain, by_name = _given(wrapped.parameters, module)
    noted = {"tuples": list(tuples), "parameters": plain, "globals": by_name}
    stated = {key: value for key, value in noted.items() if value}
    module_name, base = _importable(module)
    return Located(f"{module_name}:{name}", base, stated, wrapped.resources)


def _module_of(inner: Any) -> ModuleType:
    module = sys.modules.get(getattr(inner, "__module__", None) or "")
    if module is None:
        raise UserError(f"workers cannot find {inner!r}, which is in no module", TOP)
    return module


def _name_in(module: ModuleType, inner: Any) -> str:
    for name, value in vars(module).items():
        if value is inner:
            return name
    name = getattr(inner, "__qualname__", repr(inner))
    what = f"workers cannot import the trainable {name}, which is not a global of {module.__name__}"
    raise UserError(what, f"{TOP}; it may be wrapped by tune.with_parameters where it is used")


def _given(
    parameters: Mapping[str, Any], module: ModuleType
) -> tuple[dict[str, Any], dict[str, str]]:
    plain, by_name = {}, {}
    for parameter, value in parameters.items():
        if is_plain(value):
            plain[parameter] = value
            continue
        names = [name for name, each in vars(module).items() if each is value]
        if not names:
            what = f"tune.with_parameters: workers cannot be given {parameter}, {value!r:.60}"
            where = f"define it as a global of {module.__name__}, outside of any function and of"
            raise UserError(what, f'{where} if __name__ == "{MAIN}", or load it in the trainable')
        by_name[parameter] = names[0]
    return plain, by_name


def _importable(module: ModuleType) -> tuple[str, Path]:
    name = module.__name__
    file = getattr(module, "__file__", None)
    if name != MAIN:
        depth = name.count(".") + (Path(file or "").name == "__init__.py")
        return name, Path.cwd() if file is None else Path(file).absolute().parents[depth]
    if file is None:
        what = "workers cannot import a trainable that was typed in, as in a notebook"
        raise UserError(what, "write it into a file beside the notebook, and import it from there")
    spec = getattr(module, "__spec__", None)
    if spec is not None:  # python -m package.module
        named = str(spec.name)
        return named, Path(file).absolute().parents[named.count(".")]
    path = Path(file).absolute()
    if path.stem.isidentifier() and path.suffix == ".py":
        return path.stem, path.parent
    what = f"workers cannot import the script {path.name}"
    raise UserError(what, "give it a name of letters, digits and '_' that ends in .py")


@dataclass(frozen=True)
class PlannedStudy:
    """A study that a Tuner describes."""

    name: str
    storage: str  # the URL of its database
    folder: str  # the experiment's, with its checkpoints
    base: Path  # the folder of its trainable's module
    text: str  # its study file
    dropped: list[str]  # a text for each thing that could not be carried over
    quiet: bool


def plan_of(
    trainable: Any,
    param_space: Mapping[str, Any] | None,
    tune_config: TuneConfig | None,
    run_config: RunConfig | None,
) -> PlannedStudy:
    """The study that a Tuner describes. Raises UserError for what cannot be carried over."""
    for given, wanted in ((tune_config, TuneConfig), (run_config, RunConfig)):
        if given is not None and not isinstance(given, wanted):
            what = f"tune.Tuner was given {given!r:.80}"
            raise UserError(what, f"give a tune.{wanted.__name__}")
    tuned, ran = tune_config or TuneConfig(), run_config or RunConfig()
    if not isinstance(param_space or {}, Mapping):
        raise UserError(f"param_space must be a dict, not {param_space!r:.80}")
    space = read_space(param_space or {})
    located = locate(trainable, space.tuples)
    trainable_name = located.kind.partition(":")[2]
    name = ran.name or f"{trainable_name}_{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}"
    root = _root(ran)
    budget = _budget(tuned, ran, space)
    # Without `with_resources` one CPU and no GPU, as in Ray Tune.
    cpu, gpu = located.resources.get("cpu", 1) or 1, located.resources.get("gpu", 0)
    study = {
        "study": name,
        "task": _task(located, space),
        "space": space.space,
        "objective": _objective(tuned),
        "budget": budget,
        "resources": {"workers": tuned.max_concurrent_trials or "auto", "cpu": cpu, "gpu": gpu},
        "checkpoints": f"{root}/{name}",
    }
    pruner = _pruner(tuned.scheduler, budget["per_trial"]["steps"])
    if pruner is not None:
        study["search"] = {"pruner": pruner}
    if space.grids:
        points = space.grid_points() * max(tuned.num_samples, 1)
        study["enqueue"] = [dict(point) for point in points]
    text = yaml.safe_dump(study, sort_keys=False, allow_unicode=True)
    return PlannedStudy(
        name,
        _database_of(root),
        f"{root}/{name}",
        located.base,
        text,
        _dropped(tuned, space, pruner, _first_rung(text, located.base)),
        quiet=ran.verbose == 0,
    )


def _root(ran: RunConfig) -> str:
    if ran.storage_filesystem is not None:
        what = "tune.RunConfig(storage_filesystem=...) cannot be carried over"
        raise UserError(what, "give a URL such as s3://bucket/folder as storage_path")
    stated = str(ran.storage_path)
    return stated.rstrip("/") if is_url(stated) else str(Path(stated).expanduser().absolute())


def _database_of(root: str) -> str:
    stated = os.environ.get("HPSEARCH_STORAGE")
    if stated:
        return stated
    if is_url(root):
        what = f"a database cannot be in {root}"
        raise UserError(what, "name one in HPSEARCH_STORAGE, such as postgresql://host/studies")
    return f"sqlite:///{root}/{DATABASE}"


def _task(located: Located, space: ReadSpace) -> dict[str, Any]:
    args = dict(space.constants)
    if located.noted:
        args["_tune"] = dict(located.noted)
    task: dict[str, Any] = {"kind": located.kind, "library": "ray_tune"}
    return {**task, "args": args} if args else task


def _objective(tuned: TuneConfig) -> dict[str, str]:
    scheduler = tuned.scheduler
    metric = tuned.metric or getattr(scheduler, "_metric", None)
    mode = tuned.mode or getattr(scheduler, "_mode", None)
    if not isinstance(metric, str) or mode not in DIRECTIONS:
        what = f"a study needs to know what makes a trial good, not {metric!r} and {mode!r}"
        raise UserError(what, 'give tune.TuneConfig(metric="loss", mode="min")')
    return {"metric": metric, "direction": DIRECTIONS[mode]}


def _budget(tuned: TuneConfig, ran: RunConfig, space: ReadSpace) -> dict[str, Any]:
    seconds = tuned.time_budget_s
    if isinstance(seconds, datetime.timedelta):
        seconds = seconds.total_seconds()
    budget: dict[str, Any] = {"wall_clock": seconds} if seconds else {}
    if tuned.num_samples != -1:
        budget["trials"] = tuned.num_samples * len(space.grid_points())
    elif not seconds:
        what = "tune.TuneConfig(num_samples=-1) without time_budget_s would never end"
        raise UserError(what, "give one of them")
    iterations = _iterations(tuned, ran)
    every = ran.checkpoint_config.checkpoint_frequency or math.ceil(iterations / REPORTS)
    every = min(every, iterations)
    return {**budget, "per_trial": {"steps": iterations, "report_every": every}}


def _iterations(tuned: TuneConfig, ran: RunConfig) -> int:
    stop = {} if ran.stop is None else ran.stop
    if not isinstance(stop, Mapping) or set(stop) - {ITERATION}:
        what = f"tune.RunConfig(stop={ran.stop!r:.80}) cannot be carried over"
        hint = f"give {STOP}, and return from the trainable where it has reached its goal"
        raise UserError(what, hint)
    found, end = stop.get(ITERATION), _end_by(tuned.scheduler)
    if found is None or (end is not None and end < found and tuned.scheduler._stop_last_trials):
        found = end
    if found is None:
        what = "a study needs to know how many reports a trial makes at most"
        raise UserError(what, f"give run_config={STOP}")
    if found < 1:
        raise UserError(f"a trial cannot have {found!r} training iterations", f"give {STOP}")
    return int(found)


def _end_by(scheduler: Any) -> float | None:
    if getattr(scheduler, "_time_attr", None) != ITERATION:
        return None
    end: float | None = getattr(scheduler, "_max_t", getattr(scheduler, "_max_t_attr", None))
    return end


def _pruner(scheduler: Any, iterations: int) -> dict[str, Any] | None:
    """ASHA's grace period and reduction factor; None if they cannot be carried over. With a grace
    period longer than a trial, no trial pauses."""
    if not isinstance(scheduler, ASHAScheduler) or scheduler._time_attr != ITERATION:
        return None
    factor = scheduler._reduction_factor
    if factor != int(factor) or factor < LEAST_ETA:
        return None
    levels = [level for level, _ in scheduler._brackets[0]._rungs]
    return {"kind": "promotion", "eta": int(factor), "first_rung": min(*levels, iterations)}


def _first_rung(text: str, base: Path) -> float | None:
    """The iterations after which trials first pause, by the study file; None if none pauses."""
    try:
        first, *above = rung_levels(parse(text, base=base))
    except SpecError:  # which `fit` will raise
        return None
    return first if above else None


def _dropped(
    tuned: TuneConfig, space: ReadSpace, pruner: Mapping[str, Any] | None, first: float | None
) -> list[str]:
    found = []
    name = type(tuned.scheduler).__name__
    if pruner is not None:
        what = "its grace period leaves no iteration at which trials could pause"
        if first is not None:
            share = f"the best 1 in {pruner['eta']} go on; none is stopped for good"
            what = f"trials pause from {first:g} iterations on, and {share}"
        found.append(f"scheduler {name}: {what}")
    elif name not in ("NoneType", "FIFOScheduler"):
        found.append(f"scheduler {name}: a study has its own (docs/search.md)")
    if tuned.search_alg is not None:
        found.append("search_alg: a study has its own (docs/search.md)")
    if space.grids:
        names = ", ".join(space.grids)
        found.append(f"grid_search of {names}: all combinations are tried, but weak ones pause")
    return found
