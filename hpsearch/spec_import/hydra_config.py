"""A study file from a configuration of Hydra with `hydra.sweeper`: Hydra's own sweeper, or those of
Optuna, Ax and Nevergrad.

The job becomes a command with an override for each parameter. Config groups and other files are not
read: Hydra composes them when the command runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpsearch.spec_import.draft import (
    FORWARD,
    USUAL_TRIALS,
    Lines,
    StudyDraft,
    is_placeholder,
    study_name,
    with_placeholder,
)
from hpsearch.spec_import.hydra_grammar import NotCarried, parameter
from hpsearch.study_file.methods import SAMPLERS
from hpsearch.study_file.types import is_number, is_whole_number

OWN = "basic"
_LENGTHS = ("max_epochs", "epochs", "num_epochs", "n_epochs", "num_train_epochs")
_METRICS = ("optimized_metric", "metric", "monitor")
"""Keys with which configurations usually name the metric that the job returns."""
_LOST = {
    "sampler": "its class is kept where it is one of Optuna's, and its arguments are left out",
    "n_jobs": "resources.workers says how many trials run side by side",
    "storage": "--storage says where the study is kept",
    "custom_search_space": "write such a space with when: conditions",
}
"""Keys of a sweeper that are left out, and what to write instead."""
_STEP = "hydra.sweeper"


def draft(document: Mapping[str, Any], lines: Lines, stem: str) -> StudyDraft:
    """The study of a configuration.

    Args:
        document: The configuration, as YAML has it.
        lines: The line of each place in it.
        stem: The file's name without its ending.
    """
    return _Config(document, lines, stem).draft()


def sweeper_in(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What stands under `hydra.sweeper`; None if there is nothing."""
    hydra = document.get("hydra")
    sweeper = hydra.get("sweeper") if isinstance(hydra, dict) else document.get("hydra.sweeper")
    return sweeper if isinstance(sweeper, dict) else None


class _Config:
    """One configuration being carried over."""

    def __init__(self, document: Mapping[str, Any], lines: Lines, stem: str) -> None:
        self._document = document
        self._lines = lines
        self._sweeper = sweeper_in(document) or {}
        named = self._sweeper.get("study_name")
        self._draft = StudyDraft("Hydra", study_name(str(named or stem)))

    def draft(self) -> StudyDraft:
        made = self._draft
        kind = self._kind()
        self._parameters(kind)
        length = self._length()
        words = ["python", "main.py"]
        words += [with_placeholder(f"{name}=", name) for name in made.space]
        if length is not None:
            words.append(with_placeholder(f"{length[0]}=", "budget"))
        made.sections["task"] = {"kind": "command", "run": " ".join(words)}
        made.remark(
            None, "task", "a configuration does not name its program: write yours for main.py"
        )
        made.sections["objective"] = self._objective(kind)
        made.sections["budget"] = self._budget(length)
        made.sections["search"] = {**self._sampler(), "pruner": "none"}
        what = "Hydra trains each job in full; remove pruner: none to pause weak trials"
        made.remark(None, "search", what)
        self._rest()
        metric = self._first_metric()
        example = f'{{"resource": 1, "{metric}": 0.5}}'
        what = f"Hydra reads what the job returns; here it must print a line such as {example}"
        made.remark(None, "task", what)
        return made

    def _line(self, place: str) -> int | None:
        return self._lines.get(place)

    def _kind(self) -> str:
        """The sweeper: basic, optuna, ax, nevergrad or another."""
        target = str(self._sweeper.get("_target_", ""))
        defaults = self._document.get("defaults")
        chosen = [target]
        for each in defaults if isinstance(defaults, list) else []:
            if isinstance(each, dict):
                chosen += [f"{value}" for key, value in each.items() if "hydra/sweeper" in str(key)]
        for word in ("optuna", "nevergrad", "orion", "ax"):
            if any(word in each.lower() for each in chosen):
                return word
        tells_optuna = {"direction", "n_trials", "sampler", "search_space"}
        return "optuna" if tells_optuna & self._sweeper.keys() else OWN

    # ---------------------------------------------------------------------------------- space

    def _parameters(self, kind: str) -> None:
        for place, key, part in self._written():
            line = self._line(place)
            name = str(key)
            if not is_placeholder(name):
                what = f"{name} {FORWARD}: it cannot be a placeholder of the command; rename it"
                self._draft.remark(line, "space", what)
                continue
            if isinstance(part, dict):
                made, why = _old_form(part)
            else:
                made, why = self._sweep(part, kind)
            if made is None:
                self._draft.remark(line, "space", f"{name}={part} {FORWARD}: {why}")
            elif made["type"] == "categorical" and len(made["choices"]) == 1:
                self._fixed(name, made["choices"][0], line)
            else:
                self._draft.add(name, made, line)

    def _fixed(self, name: str, value: Any, line: int | None) -> None:
        """An override with a single value: the same in all jobs."""
        if value is None:
            what = f"{name} {FORWARD}: write it into your configuration"
            self._draft.remark(line, "space", what)
            return
        self._draft.add(name, {"type": "categorical", "choices": [value]}, line)
        self._draft.remark(line, f"space.{name}", "has a single value: the same in all trials")

    def _written(self) -> Iterator[tuple[str, Any, Any]]:
        """The sweeps with their places: under `params`, or `search_space` as in Hydra 1.1."""
        for key in ("params", "search_space", "parametrization"):
            part = self._sweeper.get(key)
            if key == "params" and isinstance(part, list):
                for i, each in enumerate(part):
                    name, _, sweep = str(each).partition("=")
                    yield f"{_STEP}.params[{i}]", name.strip(), sweep
            elif isinstance(part, dict):
                for name, sweep in part.items():
                    yield f"{_STEP}.{key}.{name}", name, sweep
        ax = self._sweeper.get("ax_config")
        params = ax.get("params") if isinstance(ax, dict) else None
        for name, sweep in params.items() if isinstance(params, dict) else ():
            yield f"{_STEP}.ax_config.params.{name}", name, sweep

    def _sweep(self, part: Any, kind: str) -> tuple[dict[str, Any] | None, str]:
        text = "null" if part is None else str(part)
        if isinstance(part, list):
            text = ",".join(map(str, part))
        if isinstance(part, bool):
            text = text.lower()
        try:
            return parameter(text, stop_included=kind not in (OWN, "nevergrad")), ""
        except NotCarried as error:
            return None, str(error)

    # -------------------------------------------------------------------------- objective, budget

    def _length(self) -> tuple[str, float] | None:
        """The key that says how many epochs a job trains, and how many."""
        for place, value in _leaves(self._document):
            is_length = place.rpartition(".")[2] in _LENGTHS and is_number(value) and value > 0
            is_searched = place in self._draft.space or place.startswith("hydra.")
            if is_length and not is_searched:
                return place, value
        return None

    def _first_metric(self) -> str:
        for key in _METRICS:
            value = self._document.get(key)
            if isinstance(value, str):
                return value
        return "value"

    def _objective(self, kind: str) -> Any:
        metric = self._first_metric()
        if metric == "value":
            what = "Hydra does not name what the job returns: write the metric that it reports"
            self._draft.remark(None, "objective", what)
        direction = self._sweeper.get("direction")
        if isinstance(direction, list):
            names = [f"{metric}_{i}" for i in range(len(direction))]
            pairs = zip(names, direction, strict=True)
            return [{"metric": name, "direction": _word(each)} for name, each in pairs]
        if direction is None:
            direction = self._ax_direction()
        if direction is None:
            what = f"the {kind} sweeper states no direction: minimize is assumed"
            self._draft.remark(None, "objective", what)
        return {"metric": metric, "direction": _word(direction)}

    def _ax_direction(self) -> str | None:
        ax = self._sweeper.get("ax_config")
        experiment = ax.get("experiment") if isinstance(ax, dict) else None
        minimize = experiment.get("minimize") if isinstance(experiment, dict) else None
        return None if minimize is None else ("minimize" if minimize else "maximize")

    def _budget(self, length: tuple[str, float] | None) -> dict[str, Any]:
        ax = self._sweeper.get("ax_config")
        stated = self._sweeper.get("n_trials", self._sweeper.get("budget"))
        if stated is None and isinstance(ax, dict):
            stated = ax.get("max_trials")
        trials = USUAL_TRIALS
        if is_whole_number(stated) and stated > 0:
            trials = stated
        else:
            what = f"no number of trials is stated: {USUAL_TRIALS} are assumed"
            self._draft.remark(None, "budget", what)
        if length is not None:
            what = f"{length[0]} is how long a job trains: {{budget}}"
            self._draft.remark(self._line(length[0]), "budget", what)
            return {"trials": trials, "per_trial": {"epochs": length[1]}}
        what = "nothing says how long a job trains; set per_trial, and write {budget} into run"
        self._draft.remark(None, "budget", what)
        return {"trials": trials, "per_trial": {"epochs": 1}}

    def _sampler(self) -> dict[str, str]:
        """The sampler of Optuna that is named by its class."""
        sampler = self._sweeper.get("sampler")
        target = sampler.get("_target_") if isinstance(sampler, dict) else None
        named = str(target).rpartition(".")[2]
        by_class = {theirs: ours for ours, theirs in SAMPLERS.items()}
        return {"sampler": by_class[named]} if named in by_class else {}

    def _rest(self) -> None:
        """Say what is left out."""
        for key, instead in _LOST.items():
            if self._sweeper.get(key) not in (None, 1):
                what = f"{key}: {instead}"
                self._draft.remark(self._line(f"{_STEP}.{key}"), "search", what)


def _word(direction: Any) -> str:
    return "maximize" if str(direction).lower().endswith("maximize") else "minimize"


def _old_form(part: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """A parameter as Hydra 1.1 wrote it: `{type: float, low: 0, high: 1, step: 0.1, log: true}`, or
    as Ax does: `{type: range, bounds: [0, 1]}`."""
    kind = part.get("type")
    if kind == "categorical" and isinstance(part.get("choices"), list):
        return {"type": "categorical", "choices": part["choices"]}, ""
    if kind == "choice" and isinstance(part.get("values"), list):
        return {"type": "categorical", "choices": part["values"]}, ""
    low, high = part.get("low"), part.get("high")
    bounds = part.get("bounds")
    if kind == "range" and isinstance(bounds, list) and len(bounds) == 2:
        low, high = bounds
        kind = "int" if all(map(is_whole_number, bounds)) else "float"
    if kind not in ("int", "float") or not is_number(low) or not is_number(high):
        return None, "it has no type and bounds that are known"
    made: dict[str, Any] = {"type": kind, "low": low, "high": high}
    if part.get("log") or part.get("log_scale"):
        made["log"] = True
    elif part.get("step") is not None:
        made["step"] = part["step"]
    return made, ""


def _leaves(part: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings with their dotted places."""
    for key, value in part.items():
        place = f"{before}{key}"
        if isinstance(value, dict):
            yield from _leaves(value, f"{place}.")
        else:
            yield place, value
