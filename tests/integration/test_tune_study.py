"""The script of the page on Ray Tune: run, killed, continued from the command line, run again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from integration.test_run_and_resume import Workplace
from support.files import pages
from support.patience import PATIENCE_S

HELD = """\
        while epoch == 3 and Path("hold").exists():
            __import__("time").sleep(0.02)
"""
LOOP = "    for epoch in range(done + 1, 10):\n"


@pytest.mark.thorough
def test_the_script_of_the_page_is_killed_resumed_and_read(tmp_path, shared_ray):
    workplace = Workplace(tmp_path / "work", shared_ray)
    script = workplace.folder / "my_tuning.py"
    (text,) = pages.texts("ray-tune", "python")
    assert text.startswith("# my_tuning.py\n")
    hold = str(workplace.folder / "hold")
    held = text.replace(LOOP, LOOP + HELD.replace('"hold"', repr(hold)))
    assert held != text
    script.write_text(held)
    Path(hold).touch()

    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(script)],
            cwd=workplace.folder,
            env={**os.environ, **workplace.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    process = started()
    workplace.wait_until("SELECT 1 FROM reports WHERE resource >= 2", process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    Path(hold).unlink()
    workplace.call("resume", "my-tuning")

    states = dict(workplace.rows("SELECT state, count(*) FROM trials GROUP BY state"))
    assert sum(states.values()) == 8
    assert states["complete"] >= 1
    longest = "SELECT max(n) FROM (SELECT count(*) AS n FROM reports GROUP BY trial)"
    assert workplace.rows(longest) == [(9,)]
    again = started()
    out, errors = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0, errors
    assert "'depth': 2" in out
    assert "'width': 5" in out or "'width': 4" in out or "'width': 6" in out
