"""A study file from a script that calls `study.optimize`.

The script is run in a process of its own up to its search, and then the first trial that it would
have tried, to see how many steps a trial reports. Nothing is searched or stored.
"""

import importlib
import inspect
import math
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import optuna
from optuna.pruners import BasePruner, NopPruner
from optuna.study import MaxTrialsCallback
from optuna.trial import TrialState

from hpsearch.domain.numbers import duration
from hpsearch.errors import UserError
from hpsearch.plugins.optuna.length import stated_length
from hpsearch.plugins.optuna.places import words_of
from hpsearch.plugins.optuna.storages import objectives_of
from hpsearch.running.executors import worker_process
from hpsearch.running.executors.cluster import callers_folder
from hpsearch.search.proposals import FIXED_PARAMS
from hpsearch.study_file import methods
from hpsearch.study_file.starters.draft import USUAL_TRIALS, StudyDraft
from hpsearch.study_file.text import text_of
from trials.contract import TaskError
from trials.foreign import in_words, plain
from trials.running.reported import LENGTHS
from trials.tasks.function.function_task import SCRIPT, file_of

LIMIT_S = 120.0  # seconds that the one trial may take
REPORTING = (".report(", "Callback", "integration")
"""In a script whose objective may report on the way."""
ROOM = 4
"""The budget over the steps of the first trial, where nothing says how many others report."""
UNNAMED = "no-name-"  # begins the names that Optuna gives to studies without one


@dataclass
class FirstTrial:
    """The one trial that was run."""

    steps: list[int]  # the steps that it has reported
    may_prune: bool  # it has asked whether it should be pruned
    whole: dict[str, tuple[int, int]]
    """Its whole numbers: their values, and the largest that they can have."""
    error: str | None  # the error that it ended with, if any
    stated: int | None = None
    """The most steps that a trial can report, as the script says it; None if it does not."""


def draft(source: str, study: str | None, folder: Path) -> StudyDraft:
    """The study file, in a folder, of what a script searches with the arguments behind it. Raises
    UserError if it fails, or searches in a way that a study cannot."""
    words = words_of(source)
    assert words is not None, "it is a script"
    file = Path(words[0])
    text = text_of(file, "script", "name a script that calls study.optimize")
    if "optuna" not in text:
        hint = "one of Ray Tune runs itself, with another import: docs/ray-tune.md"
        hint = f"{hint}; for other code see docs/own-training-code.md"
        if "wandb.sweep" in text:
            hint = f"write what it gives to wandb.sweep, and program: {file.name}, into sweep.yaml"
        raise UserError(f"{file} does not use Optuna", hint)
    kind = _kind(file, folder)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, words, kind, study))
    with callers_folder.left_out(spawns=True):
        process.start()
    theirs.close()
    try:
        made: StudyDraft | str = ours.recv()
        if isinstance(made, str):
            raise UserError(made)
        tried: FirstTrial | None = ours.recv() if ours.poll(LIMIT_S) else None
    except EOFError:
        process.join()
        what = f"the process of {file} ended by itself, with code {process.exitcode}"
        raise UserError(what, "run it by hand to see why") from None
    finally:
        process.kill()
        process.join()
    if tried is not None:
        _fit(made, tried)
        return made
    made.sections["budget"]["per_trial"] = {"steps": 1}
    if any(each in text for each in REPORTING):
        made.sections["budget"]["per_trial"] = {}
        what = f"the first trial had not ended after {duration(LIMIT_S)}"
        how = "write how many steps a trial reports, such as per_trial: {steps: 100}"
        made.remarks.append(f"{what}: {how}")
    return made


def _kind(file: Path, folder: Path) -> str:
    """The `kind` of a script, seen from the folder of its study file."""
    script, home = file.resolve(), folder.resolve()
    parts = script.relative_to(home).with_suffix("").parts if script.is_relative_to(home) else ()
    kind = f"{'.'.join(parts)}:{SCRIPT}"
    try:
        is_found = bool(parts) and file_of(kind, home).samefile(script)
    except TaskError:
        is_found = False
    if not is_found:
        what = f"workers cannot import {file} from the folder of the study file"
        beside = file.with_name("study.yaml")
        hint = f"write it beside the script, whose name must be its own: hpsearch init {beside}"
        raise UserError(what, hint)
    return kind


def _fit(draft: StudyDraft, tried: FirstTrial) -> None:
    remark, search = draft.remarks.append, draft.sections["search"]
    pruner = search.get("pruner")
    length = _length(tried, _warm_up(pruner), remark)
    draft.sections["budget"]["per_trial"] = {"steps": length}
    if not tried.steps:
        search.pop("pruner", None)
    elif not tried.may_prune or tried.steps != sorted(tried.steps):
        in_order = tried.steps == sorted(tried.steps)
        why = "never asks should_prune" if in_order else "reports its steps in no order"
        remark(f"the objective {why}: each trial trains in full")
        search["pruner"] = "none"
    elif pruner is None:
        remark("weak trials pause instead of ending, and the best of them continue")
    elif min(tried.steps) == 0:
        _shift(pruner)


def _shift(pruner: Any) -> None:
    if isinstance(pruner, dict):
        if "n_warmup_steps" in pruner:
            pruner["n_warmup_steps"] += 1
        _shift(pruner.get("wrapped_pruner"))


def _warm_up(pruner: Any) -> int:
    """The most steps that a pruner waits for."""
    if not isinstance(pruner, dict):
        return 0
    return max(pruner.get("n_warmup_steps") or 0, _warm_up(pruner.get("wrapped_pruner")))


def _length(tried: FirstTrial, warm_up: int, remark: Callable[[str], None]) -> int:
    if tried.error is not None:
        remark(f"the first trial fails: {tried.error}")
    length = max(tried.steps, default=0) + (min(tried.steps, default=1) == 0)
    for name, (value, largest) in tried.whole.items():
        is_length = value == length or (name in LENGTHS and value >= length)
        if is_length and largest >= length > 1:
            remark(f"a trial reports as many steps as {name} says, {largest} at most")
            return largest
    if tried.stated is not None and tried.stated >= length > 0:
        remark(f"a trial reports {tried.stated} steps at most, as the script says")
        return tried.stated
    if not length:
        return 1
    room = max(ROOM * length, 2 * warm_up)
    what = f"nothing says how many steps a trial reports: the first one ended at {length}"
    how = f"{room} leave room, and one that reports more trains on to its own end, and says so"
    remark(f"{what}; {how}")
    return room


_stated: dict[int, tuple[Any, dict[str, Any]]] = {}
"""By their ids: the samplers and pruners that the script has made, with their arguments."""


def _serve(pipe: Connection, words: list[str], kind: str, name: str | None) -> None:
    worker_process.let_children_die_with_us()
    os.dup2(2, 1)  # what the script prints is no result
    scripts = importlib.import_module("hpsearch.plugins.optuna.objective")
    for module in (optuna.samplers, optuna.pruners):
        for each in map(vars(module).get, module.__all__):
            if isinstance(each, type):
                _remember(each)
    file = Path(words[0])
    try:
        recorder = scripts.run_to_search(file, {}, *words[1:])
    except TaskError as error:
        pipe.send("; ".join(problem.what for problem in error.problems))
        return
    search = recorder.search
    named = search.study.study_name
    named = file.stem if named.startswith(UNNAMED) else named
    draft = StudyDraft(f"the first study.optimize of {file.name}", name or named)
    _Script(recorder, draft).carry_over(kind)
    pipe.send(draft)
    sys.modules[SCRIPT] = search.module
    pipe.send(_tried(search, file, recorder.arguments))


def _remember(method: type[Any]) -> None:
    begin = method.__init__
    signature = inspect.signature(begin)

    def remembering(self: Any, *args: Any, **named: Any) -> None:
        caller = str(sys._getframe(1).f_globals.get("__name__"))
        if type(self) is method and not caller.startswith("optuna."):
            given = signature.bind(self, *args, **named).arguments
            _stated[id(self)] = self, dict(list(given.items())[1:])
        begin(self, *args, **named)

    remembering.__signature__ = signature  # type: ignore[attr-defined]
    method.__init__ = remembering


class _Script:
    """A script that is carried over into a draft."""

    def __init__(self, recorder: Any, draft: StudyDraft) -> None:
        self._recorder, self._draft = recorder, draft
        self._study: optuna.Study = recorder.search.study
        self._called_with: Mapping[str, Any] = recorder.search.called_with
        self._settings: dict[str, Any] = {}
        self._seed: int | None = None

    def _remark(self, what: str) -> None:
        self._draft.remarks.append(what)

    def carry_over(self, kind: str) -> None:
        task: dict[str, Any] = {"kind": kind, "library": "optuna"}
        if self._recorder.arguments:
            task["args"] = self._recorder.arguments
        pairs = zip(*objectives_of(self._study), strict=True)
        several = [{"metric": name, "direction": direction} for name, direction in pairs]
        sampler = self._sampler(self._study.sampler)
        pruner = self._method(self._study.pruner) if len(several) == 1 else None
        search = {"sampler": sampler, "pruner": pruner}
        jobs = self._called_with["n_jobs"]
        self._draft.sections = {
            "seed": self._seed,
            "task": task,
            "settings": self._settings,
            "space": self._draft.space,
            "objective": several if len(several) > 1 else several[0],
            "budget": self._budget(),
            "search": {name: each for name, each in search.items() if each is not None},
            "enqueue": self._enqueued(),
            "resources": {"workers": jobs} if jobs > 1 else {},
        }
        if self._recorder.storages:
            self._remark("its storage is not used: the study is in the database of hpsearch")
        if self._study.user_attrs:
            self._remark(
                "trials read the attributes of the study, which the database does not keep"
            )

    def _budget(self) -> dict[str, Any]:
        most = [self._called_with["n_trials"]]
        for each in self._called_with["callbacks"] or ():
            if isinstance(each, MaxTrialsCallback):
                most.append(each._n_trials)
            else:
                called = plain(getattr(each, "__name__", type(each).__name__))
                self._remark(f"the callback {called} is not called: see docs/optuna.md")
        grid = _stated.get(id(self._study.sampler), (None, {}))[1].get("search_space")
        if grid:
            most.append(math.prod(map(len, grid.values())))
        trials = min((each for each in most if each is not None), default=None)
        timeout = self._called_with["timeout"]
        if trials is None and timeout is None:
            trials = USUAL_TRIALS
            self._remark(f"the script searches until it is stopped: {trials} trials here")
        limits = {"trials": trials, "wall_clock": timeout}
        return {name: each for name, each in limits.items() if each is not None}

    def _enqueued(self) -> list[dict[str, Any]]:
        trials = self._study.get_trials(deepcopy=False)
        waiting = [trial for trial in trials if trial.state is TrialState.WAITING]
        if any(trial.user_attrs for trial in waiting):
            self._remark("the user attributes of enqueued trials are not carried over")
        if len(trials) > len(waiting):
            self._remark("the trials that it adds by add_trial are not carried over")
        return [trial.system_attrs.get(FIXED_PARAMS, {}) for trial in waiting]

    def _sampler(self, sampler: Any) -> Any:
        stated = _stated.get(id(sampler), (None, {}))[1]
        if isinstance(sampler, optuna.samplers.GridSampler):
            for name, choices in stated["search_space"].items():
                self._draft.add(name, {"type": "categorical", "choices": list(choices)})
            return "brute_force"
        if isinstance(sampler, optuna.samplers.PartialFixedSampler):
            self._settings |= stated["fixed_params"]
            return self._sampler(stated["base_sampler"])
        return self._method(sampler)

    def _method(self, method: Any) -> Any:
        """A sampler or pruner as a study file has it; None for the default, or with a remark."""
        method_class: type = type(method)
        known = methods.PRUNERS if isinstance(method, BasePruner) else methods.SAMPLERS
        kinds = {long: short for short, long in known.items()}
        is_own = not method_class.__module__.startswith("optuna.")
        if not is_own and id(method) not in _stated:
            return None
        if is_own or method_class.__name__ not in kinds:
            self._remark(f"{method_class.__name__} cannot be carried over: a study has its own")
            return None
        writable = methods.arguments_of(method_class).model_fields
        carried: dict[str, Any] = {}
        for name, value in _stated[id(method)][1].items():
            if name == "seed":
                self._seed = value
            elif name in writable and isinstance(value, BasePruner):
                carried[name] = self._method(value)
            elif name in writable and isinstance(value, bool | int | float | str | None):
                carried[name] = value
            elif name != "constraints_func":  # each trial calls it
                self._remark(f"{name} of {method_class.__name__} cannot be carried over")
        kind = kinds[method_class.__name__]
        return {"kind": kind, **carried} if carried else kind


class _WatchedPruner(NopPruner):
    """Remembers whether it is asked."""

    is_asked = False

    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        self.is_asked = True
        return False


def _tried(search: Any, file: Path, arguments: Mapping[str, Any]) -> FirstTrial:
    study: optuna.Study = search.study
    study.pruner = pruner = _WatchedPruner()
    trial = study.ask()
    error = None
    try:
        search.objective(trial)
    except optuna.TrialPruned:
        pass
    except Exception as raised:  # noqa: BLE001 - of any objective
        error = in_words(raised)
    frozen = study.get_trials(deepcopy=False)[trial.number]
    whole = {}
    for name, value in frozen.params.items():
        if isinstance(value, int):
            whole[name] = value, getattr(frozen.distributions[name], "high", value)
    steps = list(frozen.intermediate_values)
    known = {**vars(search.module), **arguments}
    stated = stated_length(file.read_text(encoding="utf-8"), known, min(steps, default=1))
    return FirstTrial(steps, pruner.is_asked, whole, error, stated)
