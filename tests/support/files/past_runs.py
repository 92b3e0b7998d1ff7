"""Sources of past runs as other programs write them, and the import of one as a person would do
it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hpsearch.cli.main import main
from hpsearch.domain.history import History
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store


def command(*words: str) -> int:
    """Run a command, and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    code = ended.value.code
    return code if isinstance(code, int) else 0


def imported(url: str, source: Path | str, *options: str) -> History:
    """Import a source as study `old`, check the database, and load the study."""
    code = command("import", str(source), "--name", "old", "--storage", url, *options)
    assert code == 0
    with closing(Store.open(url, create=False)) as store:
        with store.reading() as connection:
            assert violations(connection) == []
        return store.load("old")


def refused(capsys: pytest.CaptureFixture[str], source: Path | str, *options: str) -> str:
    """Import a source that does not fit, and return what is said."""
    capsys.readouterr()
    storage = "sqlite://"
    assert command("import", str(source), "--name", "old", "--storage", storage, *options) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


TUNE_OWN = {
    "timestamp": 1795375455,
    "checkpoint_dir_name": None,
    "done": False,
    "date": "2026-11-22_19-24-15",
    "time_this_iter_s": 0.5,
    "pid": 22302,
    "hostname": "vm",
    "node_ip": "192.0.2.2",
}
"""What Ray Tune adds to each result."""


def tune_experiment(
    folder: Path,
    trials: list[tuple[dict[str, Any], list[dict[str, float]]]],
    statuses: list[str] | None = None,
) -> Path:
    """The folder of an experiment, with the files and keys that Ray Tune 2.55 wrote for one.

    Args:
        folder: Where to write it.
        trials: The parameters and reports of each.
        statuses: How each ended; all by themselves if it is left out.
    """
    statuses = statuses or ["TERMINATED"] * len(trials)
    recorded = []
    for number, ((params, reports), status) in enumerate(zip(trials, statuses, strict=True)):
        trial_id = f"4875e_{number:05}"
        name = f"train_{trial_id}_{number}_lr=0.1_2026-11-22_19-24-08"
        trial = folder / name
        trial.mkdir(parents=True)
        (trial / "params.json").write_text(json.dumps(params, indent=2))
        (trial / "params.pkl").write_bytes(b"\x80\x05}.")
        lines = []
        for i, report in enumerate(reports, start=1):
            own = {
                **TUNE_OWN,
                "training_iteration": i,
                "trial_id": trial_id,
                "time_total_s": 0.5 * i,
                "time_since_restore": 0.5 * i,
                "iterations_since_restore": i,
                "config": params,
            }
            lines.append(json.dumps({**report, **own}) + "\n")
        (trial / "result.json").write_text("".join(lines))
        if status == "ERROR":
            error = "Failure # 1 (occurred at 2026-11-22_19-26-10)\n\x1b[36mray::train()\x1b[39m\n"
            (trial / "error.txt").write_text(f"{error}ValueError: boom\n")
            (trial / "error.pkl").write_bytes(b"\x80\x05N.")
        stated = {"trial_id": trial_id, "status": status, "relative_logdir": name}
        recorded.append([json.dumps(stated), json.dumps({"start_time": 1795375464.8})])
    state = {"trial_data": recorded, "runner_data": {}, "stats": {}}
    (folder / "experiment_state-2026-11-22_19-24-08.json").write_text(json.dumps(state))
    return folder


def values(history: History) -> list[float | None]:
    return [trial.value for trial in history.trials]


def states(history: History) -> list[str]:
    return [trial.state.value for trial in history.trials]
