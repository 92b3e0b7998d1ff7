"""A study that has ended goes on: with one trial that had paused, or with changed code."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from integration.test_run_and_resume import Workplace


@pytest.fixture
def workplace(shared_ray: Mapping[str, str], tmp_path: Path) -> Workplace:
    return Workplace(tmp_path / "work", shared_ray)


@pytest.mark.thorough
def test_a_trial_that_paused_is_trained_to_its_end_if_somebody_wants_it(workplace):
    workplace.call("run", "study.yaml")
    waits = "left_as = 'paused' AND checkpoint IS NOT NULL"
    (number,) = workplace.rows(f"SELECT number FROM trials WHERE {waits} ORDER BY number")[0]
    typed = f"resume toy --finish {number}"
    before = workplace.rows("SELECT state, count(*) FROM trials GROUP BY state ORDER BY state")
    told = workplace.call(*typed.split())
    assert re.search(rf"trial {number} trains on from \d of 9 epochs", told)
    assert f"trial {number} is complete, with " in told
    (complete, pruned), last = (
        [count for _, count in rows]
        for rows in (
            before,
            workplace.rows("SELECT state, count(*) FROM trials GROUP BY state ORDER BY state"),
        )
    )
    assert last == [complete + 1, pruned - 1]
    assert "is complete already" in workplace.ask(*typed.split(), code=2)
    assert "no problems found" in workplace.ask("db", "check")


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", ["command", "function"])
def test_trials_of_changed_code_are_told_from_those_before(workplace, kind):
    rates = workplace.folder / "rates.py"
    rates.write_text("def score(x): return float(x)\n")
    code = "import json, rates, sys\ndef train(params, trial):\n"
    code += "    trial.report(1, {'loss': rates.score(params['x'])})\n"
    code += "if __name__ == '__main__':\n"
    code += "    print(json.dumps({'resource': 1, 'loss': rates.score(sys.argv[1])}))\n"
    (workplace.folder / "rated.py").write_text(code)
    command = {"kind": "command", "run": f"{sys.executable} rated.py {{x}}"}
    task = command if kind == "command" else {"kind": "rated:train"}
    budget = {"trials": 2, "per_trial": {"epochs": 1}}
    workplace.write(task=task, settings={}, budget=budget, search={"pruner": "none"})
    assert "not as before" not in workplace.call("run", "study.yaml")
    assert "not as before" not in workplace.call("resume", "toy", "--trials", "3")
    assert "may not compare" not in workplace.hear("best", "toy")[1]
    rates.write_text("def score(x): return 1000 + float(x)\n")
    refused = workplace.ask("resume", "toy", "--trials", "4", code=2)
    assert "rates.py differs from version 1 of toy, so trials would not compare" in refused
    assert "resume toy --changed begins version 2" in refused
    said = workplace.call("resume", "toy", "--trials", "4", "--changed")
    assert "not as before: rates.py has changed" in said
    assert "version 2 of toy begins: rates.py has changed" in said
    differ = r"ran other code or data.*: trial \d is of version 1 \(since .*; 1 other of ver"
    assert re.search(differ, " ".join(workplace.hear("best", "toy")[1].split()))
    assert workplace.ask("trials", "toy", "--where", "version = 2").count("complete") == 1
    assert "rates.py has changed" in workplace.ask("show", "toy", "3")
    page = workplace.folder / "page.md"
    workplace.ask("report", "toy", "-o", str(page))
    assert "versions of the study ran other code" in page.read_text()
    assert "began 3 times; this environment is that of the trial above" in page.read_text()
    assert "no problems found" in workplace.ask("db", "check")
