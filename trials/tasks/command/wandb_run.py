"""One start of the script of a W&B sweep: the variables that it is given, and what its run leaves.

W&B's own offline mode carries the parameters: its agent writes them into a file, and so does this.
The module `wandb_hook.wandb` writes reports and, at the end, the summary of the run.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from trials.contract import ProgramFailed, Setup
from trials.descriptions.command_line import CommandLine, SweepLine
from trials.tasks.command import wandb_hook
from trials.tasks.command.report_stream import ReportLine
from trials.tasks.command.wandb_hook.wandb import RESOURCE, TOLD

SWEEP = "hpsearch"
"""The id of the sweep that a run belongs to."""
NAMED = 20
"""Metrics that a message names."""


class WandbRun:
    """The surroundings of a W&B run. `logged`: how often a run that has ended has logged the
    objective."""

    resource = RESOURCE
    logged = 0

    def __init__(self, setup: Setup, home: Path, folder: Path, config: Mapping[str, Any]) -> None:
        self.reports = home / "reports"
        self.json_file = home / "config.json"
        self._summary, self._params = home / "summary.json", home / "config.yaml"
        self._setup, self._folder, self._config = setup, folder, config

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Write the files that the run begins with, and return the variables of its program."""
        rows = {name: {"value": value} for name, value in self._config.items()}
        self._params.write_text(yaml.safe_dump({"wandb_version": 1, **rows}, sort_keys=False))
        self.json_file.write_text(json.dumps(dict(self._config)))
        setup = self._setup
        told = {
            "reports": str(self.reports),
            "summary": str(self._summary),
            "goals": [[goal.metric, goal.maximize] for goal in setup.objectives],
            "total": setup.budget.total,
        }
        places = [str(Path(wandb_hook.__file__).parent), own.get("PYTHONPATH", "")]
        return {
            **own,
            "PYTHONPATH": os.pathsep.join(filter(None, places)),
            TOLD: json.dumps(told),
            "WANDB_MODE": "offline",
            "WANDB_SWEEP_ID": SWEEP,
            "WANDB_SWEEP_PARAM_PATH": str(self._params),
            "WANDB_DIR": str(self._folder),
            "WANDB_SILENT": "true",  # its last lines would hide the script's own
        }

    def words(self, line: CommandLine, values: Mapping[str, Any]) -> list[str]:
        assert isinstance(line, SweepLine)
        return line.expanded(values, self._config, str(self.json_file))

    def end(self) -> ReportLine:
        """The report at the full budget: the summary of a run whose program has ended well. Raises
        ProgramFailed if there was no run that ended well, or it has not logged the objective."""
        if not self._summary.is_file():
            what = "the script has ended well, but no run of wandb has"
            raise ProgramFailed(f"{what}: it calls wandb.init() in its own process, or a child's")
        summary = json.loads(self._summary.read_text())
        self.logged, values = summary["logged"], summary["values"]
        for goal in self._setup.objectives:
            if goal.metric not in values:
                logged = ", ".join(sorted(values)[:NAMED]) or "nothing that is a number"
                what = f"the script has ended and never logged {goal.metric}"
                raise ProgramFailed(f"{what}: it logged {logged}; name one of these as objective")
        return ReportLine(self._setup.budget.total, values)


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
