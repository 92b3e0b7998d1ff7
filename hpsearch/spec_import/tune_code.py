"""A study file from Python code of Ray Tune: `tune.Tuner(...)` or `tune.run(...)`."""

from __future__ import annotations

import ast
from typing import Any

from hpsearch.spec_import import tune_space
from hpsearch.spec_import.draft import FORWARD, StudyDraft, study_name
from hpsearch.spec_import.python_code import Code, argument, called, stated
from hpsearch.study_file.types import is_number, is_whole_number

_HALVINGS = ("ASHAScheduler", "AsyncHyperBandScheduler", "HyperBandScheduler", "HyperBandForBOHB")
RESOURCE = "training_iteration"


def draft(code: Code, stem: str) -> StudyDraft | None:
    """The study of a file; None if nothing in it calls Tune.

    Args:
        code: The file.
        stem: Its name without its ending: the module that a worker imports.
    """
    for call in code.calls():
        name = called(call)
        if name == "Tuner" or (name == "run" and _is_tunes(call)):
            return _Call(code, call, stem).draft()
    return None


def _is_tunes(call: ast.Call) -> bool:
    """Whether `tune.run`, and not the `run` of anything else, is called."""
    function = call.func
    owner = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id in ("tune", "ray_tune")


class _Call:
    """One call of `Tuner` or `run`."""

    def __init__(self, code: Code, call: ast.Call, stem: str) -> None:
        self._code = code
        self._call = call
        self._stem = stem
        self._is_run = called(call) == "run"
        self._draft = StudyDraft("Ray Tune", study_name(stem))
        self._config = call if self._is_run else self._inner("tune_config")
        self._running = call if self._is_run else self._inner("run_config")

    def draft(self) -> StudyDraft:
        made = self._draft
        self._name()
        made.sections["task"] = {
            "kind": f"{self._stem}:{self._trainable()}",
            "library": "ray_tune",
        }
        self._space()
        metric, mode = self._of(self._config, "metric"), self._of(self._config, "mode")
        if not isinstance(metric, str):
            made.remark(
                self._call.lineno, "objective", "no metric is stated: write the one to compare by"
            )
            metric = "loss"
        if mode not in ("min", "max"):
            made.remark(self._call.lineno, "objective", "no mode is stated: minimize is assumed")
        direction = "maximize" if mode == "max" else "minimize"
        made.sections["objective"] = {"metric": metric, "direction": direction}
        pruner, longest = self._scheduler()
        made.sections["budget"] = self._budget(longest)
        made.sections["search"] = {"pruner": pruner}
        self._searcher()
        return made

    def _inner(self, name: str) -> ast.Call | None:
        """A call that is an argument, such as `TuneConfig(...)`."""
        node = argument(self._call, name)
        meant = None if node is None else self._code.meant(node)
        return meant if isinstance(meant, ast.Call) else None

    def _of(self, call: ast.Call | None, name: str) -> Any:
        """The value of an argument; None if it is not given or not known."""
        return stated(self._draft, self._code, call, name)

    def _name(self) -> None:
        name = self._of(self._running, "name")
        if isinstance(name, str):
            self._draft.study = study_name(name)

    def _trainable(self) -> str:
        """The name of the function or class that is trained."""
        node = argument(self._call, "run_or_experiment" if self._is_run else "trainable", 0)
        while node is not None:
            node = self._code.meant(node)
            if not isinstance(node, ast.Call) or not node.args:
                break
            wrapper = called(node)
            what = f"{wrapper} {FORWARD}: state resources in the study file"
            if wrapper == "with_parameters":
                what = f"{wrapper} {FORWARD}: let the function load what it was given"
            self._draft.remark(node.lineno, "task", what)
            node = node.args[0]
        if isinstance(node, ast.Name):
            known = [each.name for each in self._code.functions()]
            if node.id not in known:
                what = f"{node.id} is not defined at the top of {self._stem}.py: name its module"
                self._draft.remark(node.lineno, "task", what)
            return node.id
        what = "the trainable is not a function or class of this file: write its module and name"
        self._draft.remark(self._call.lineno, "task", what)
        return "train"

    def _space(self) -> None:
        node = argument(self._call, "config" if self._is_run else "param_space")
        if node is None:
            what = "there is no param_space: write the space"
            self._draft.remark(self._call.lineno, "space", what)
            return
        space = tune_space.mapping_in(self._code, node)
        if space is None:
            what = f"only running the code tells what {ast.unparse(node)} is: write the space"
            self._draft.remark(node.lineno, "space", what)
            return
        tune_space.add(self._draft, self._code, space)

    def _scheduler(self) -> tuple[Any, int | None]:
        """The pruner, and how far a scheduler trains a trial at most."""
        node = None if self._config is None else argument(self._config, "scheduler")
        made = None if node is None else self._code.meant(node)
        if made is None:
            what = "without a scheduler each trial is trained in full; remove pruner: none to pause"
            self._draft.remark(None, "search", f"{what} weak trials")
            return "none", None
        name = called(made) if isinstance(made, ast.Call) else ast.unparse(made)
        if name == "FIFOScheduler":
            return "none", None
        if not isinstance(made, ast.Call) or name not in _HALVINGS:
            what = f"{name} {FORWARD}: promotion pauses weak trials instead"
            self._draft.remark(made.lineno, "search", what)
            return "promotion", None
        most, eta = self._of(made, "max_t"), self._of(made, "reduction_factor")
        grace = self._of(made, "grace_period")
        pruner: dict[str, Any] = {"kind": "promotion"}
        if is_whole_number(eta) and eta >= 2:
            pruner["eta"] = eta
        elif eta is not None:
            what = f"reduction_factor {eta} {FORWARD}: eta is a whole number from 2"
            self._draft.remark(made.lineno, "search", what)
        longest = most if is_whole_number(most) and most > 0 else None
        if is_number(grace) and longest is not None and 1 <= grace < longest:
            pruner["first_rung"] = grace
        what = f"{name} stops trials for good; promotion pauses them and continues the best"
        self._draft.remark(made.lineno, "search", what)
        return pruner, longest

    def _searcher(self) -> None:
        node = None if self._config is None else argument(self._config, "search_alg")
        if node is not None:
            what = f"{ast.unparse(node)} {FORWARD}: the usual sampler is used; others: sampler:"
            self._draft.remark(node.lineno, "search", what)

    def _budget(self, longest: int | None) -> dict[str, Any]:
        budget: dict[str, Any] = {}
        count = self._of(self._config, "num_samples")
        if is_whole_number(count) and count > 0:
            budget["trials"] = count
        elif count is None:
            budget["trials"] = 1
        seconds = self._of(self._config, "time_budget_s")
        if is_number(seconds) and seconds > 0:
            budget["wall_clock"] = seconds
        grids = [name for name in self._draft.space if self._is_grid(name)]
        if grids:
            what = "Tune multiplies num_samples with the values of each grid_search; set trials"
            self._draft.remark(self._call.lineno, "budget", what)
        if not budget.keys() & {"trials", "wall_clock"}:
            budget["trials"] = 20
            what = "num_samples has no limit: 20 trials are assumed"
            self._draft.remark(self._call.lineno, "budget", what)
        budget["per_trial"] = {"steps": self._iterations(longest)}
        return budget

    def _is_grid(self, name: str) -> bool:
        remarks = [each.what for each in self._draft.remarks if each.section == f"space.{name}"]
        return any(what.startswith("grid_search") for what in remarks)

    def _iterations(self, longest: int | None) -> int:
        """How many reports a trial gives: the resource of Tune is its training iteration."""
        stop = self._of(self._running, "stop")
        stated = stop.get(RESOURCE) if isinstance(stop, dict) else None
        if isinstance(stop, dict) and set(stop) - {RESOURCE}:
            others = ", ".join(str(key) for key in stop if key != RESOURCE)
            what = f"stop at {others} {FORWARD}: budget.target ends the study at a value"
            self._draft.remark(self._call.lineno, "budget", what)
        if is_whole_number(stated) and stated > 0:
            return stated
        if longest is not None:
            return longest
        what = "nothing says how often a trial reports: set steps to its last training_iteration"
        self._draft.remark(None, "budget", what)
        return 1
