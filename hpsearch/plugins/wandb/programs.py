"""Scripts of W&B sweeps as trials: the variables that one is given, and what its run leaves.

W&B's own offline mode carries the parameters: its agent writes them into a file, and so does this.
The module `hook.wandb` writes reports and, at the end, the summary of the run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from hpsearch.plugins.wandb import hook
from hpsearch.plugins.wandb.hook.wandb import RESOURCE, TOLD
from hpsearch.plugins.wandb.sweep_line import SweepLine
from trials.contract import Problem, ProgramFailed, Setup
from trials.descriptions.command_line import GIVEN
from trials.descriptions.programs import Start, Surroundings
from trials.settings import in_full

SWEEP = "hpsearch"  # the id of the sweep that a run belongs to
NAMED = 20  # metrics that a message names


class SweepScripts:
    """Scripts that call `wandb.init` (`trials.descriptions.programs.Programs`)."""

    def line(self, text: str) -> SweepLine:
        return SweepLine(text)

    def problems(self, task: Mapping[str, Any], names: Iterable[str]) -> Iterator[Problem]:
        problem = SweepLine(task["run"]).problem_with_macros()
        if problem is not None:
            yield problem
        config = task.get("config", {})
        for name in names:
            inner = config
            *parents, last = name.split(".")
            for parent in parents:
                inner = inner.get(parent, {}) if isinstance(inner, dict) else {}
            if name in config or (isinstance(inner, dict) and last in inner):
                what = f"{name} is a parameter, too, which would replace it; keep one"
                yield Problem("task.config", what)

    def surround(self, start: Start) -> Surroundings:
        setup, home = start.setup, start.home
        given = {name: value for name, value in start.values.items() if name in GIVEN}
        config = config_of(start.task.get("config", {}), setup.params, given)
        rows = {name: {"value": value} for name, value in config.items()}
        params, json_file = home / "config.yaml", home / "config.json"
        params.write_text(yaml.safe_dump({"wandb_version": 1, **rows}, sort_keys=False))
        json_file.write_text(json.dumps(config))
        reports, summary = home / "reports", home / "summary.json"
        told = {
            "reports": str(reports),
            "summary": str(summary),
            "goals": [[goal.metric, goal.maximize] for goal in setup.objectives],
            "total": setup.budget.total,
        }
        return Surroundings(
            words=SweepLine(start.task["run"]).expanded(start.values, config, str(json_file)),
            resource=RESOURCE,
            reports=reports,
            path=(Path(hook.__file__).parent,),
            variables={
                TOLD: json.dumps(told),
                "WANDB_MODE": "offline",
                "WANDB_SWEEP_ID": SWEEP,
                "WANDB_SWEEP_PARAM_PATH": str(params),
                "WANDB_DIR": str(start.folder),
                "WANDB_SILENT": "true",  # its last lines would hide the script's own
            },
            summary=partial(_summary, summary, setup),
        )


SCRIPTS = SweepScripts()


def _summary(file: Path, setup: Setup) -> tuple[dict[str, float], str]:
    """The metrics of a run that ended well, and a line for its log. Raises ProgramFailed if there
    was none, or it has not logged the objective."""
    if not file.is_file():
        what = "the script has ended well, but no run of wandb has"
        raise ProgramFailed(f"{what}: it calls wandb.init() in its own process, or a child's")
    summary = json.loads(file.read_text())
    values: dict[str, float] = summary["values"]
    for goal in setup.objectives:
        if goal.metric not in values:
            logged = ", ".join(sorted(values)[:NAMED]) or "nothing that is a number"
            what = f"the script has ended and never logged {goal.metric}"
            raise ProgramFailed(f"{what}: it logged {logged}; name one of these as objective")
    what = f"the run has logged the objective {summary['logged']} times"
    return values, f"{what}; per_trial is {in_full(setup.budget.total)}, where its summary counts"


def config_of(
    constants: Mapping[str, Any], params: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The config of a trial: constants, and its parameters by their names. A parameter `a.b` goes
    into the mapping `a` of the constants, if they have one. A constant ``{seed}`` or the like has
    the `given` value of that name."""
    config: dict[str, Any] = _filled(constants, given)
    for name, value in params.items():
        inner = config
        *parents, last = name.split(".")
        for at, parent in enumerate(parents):
            if not isinstance(inner.get(parent), dict):
                last = ".".join([*parents[at:], last])
                break
            inner = inner[parent]
        inner[last] = value
    return config


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, given) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, given) for each in value]
    is_placeholder = isinstance(value, str) and value[:1] == "{" and value[-1:] == "}"
    return given.get(value[1:-1], value) if is_placeholder else value
