"""`hpsearch submit`, as the command line finds it."""

import os
from pathlib import Path

import pytest

from hpsearch.cli.main import main

STUDY = """
study: s
task: {kind: command, run: "true {x}", report: "{resource} {loss}"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 4, per_trial: {epochs: 4}}
"""


def test_options_that_are_not_ours_reach_sbatch_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HPSEARCH_PRELUDE", raising=False)
    Path("study.yaml").write_text(STUDY)
    options = ["--dry-run", "-pshort", "--nodes", "2", "--unknown=1"]
    with pytest.raises(SystemExit) as ended:
        main(["submit", "study.yaml", *options])
    assert ended.value.code == 0
    *script, call = capsys.readouterr().out.splitlines()
    assert call.startswith("sbatch --parsable -pshort --nodes 2 --unknown=1 --comment=hpsearch/")
    settings = [line for line in script if line.startswith("export HPSEARCH_SUBMIT=")]
    again = f"hpsearch submit study.yaml {' '.join(options[1:])}"
    assert len(settings) == 1
    assert again in settings[0]
    assert "study_file=" + os.fspath(tmp_path / "study.yaml") in script
    assert not (tmp_path / "s.slurm").exists()
