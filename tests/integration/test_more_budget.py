"""A study that has ended continues with more budget, and keeps the checkpoints it needs and no
others."""

import json
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
def test_a_study_that_has_ended_goes_on_with_a_larger_budget(workplace):
    workplace.call("run", "study.yaml")
    assert "all 14 trials have ended" in workplace.call("resume", "toy")
    before = workplace.rows("SELECT number, params FROM trials ORDER BY number")
    said = workplace.call("resume", "toy", "--trials", "20", "--wall-clock", "1h")
    assert "all 20 trials have ended" in said
    after = workplace.rows("SELECT number, params FROM trials ORDER BY number")
    assert len(after) == 20
    assert after[:14] == before
    assert workplace.rows(
        "SELECT spec LIKE '%trials: 20%', spec LIKE '%wall_clock: 1h%' FROM studies"
    ) == [(1, 1)]
    assert "20 trials of 20" in workplace.ask("status", "toy")
    assert "should be greater than 0" in workplace.ask("resume", "toy", "--trials", "0", code=2)
    assert "has already started 20 trials" in workplace.call(
        "resume", "toy", "--trials", "3", code=2
    )


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


@pytest.mark.thorough
def test_status_tells_what_the_checkpoints_take_and_only_those_that_are_kept_are_there(workplace):
    workplace.write(
        search={"pruner": "none"},
        budget={"trials": 14, "per_trial": {"epochs": 2}},
        settings={"pause": 0.0, "fragile": False},
    )
    workplace.call("run", "study.yaml")
    kept = workplace.rows("SELECT number FROM trials WHERE checkpoint IS NOT NULL ORDER BY number")
    ((home,),) = workplace.rows("SELECT checkpoints FROM studies")
    folders = sorted(Path(home).glob("trial-*"))
    assert [path.name for path in (workplace.folder / "hpsearch-studies").iterdir()] == [
        Path(home).name
    ]
    assert [path.name for path in folders] == [f"trial-{number:05d}" for (number,) in kept]
    assert len(kept) == 10
    told = json.loads(workplace.ask("status", "toy", "--format", "json"))
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert (
        told["checkpoint_bytes"]
        == sum(path.stat().st_size for path in files if not path.is_symlink())
        > 0
    )


@pytest.mark.thorough
def test_studies_with_one_folder_for_checkpoints_share_nothing(workplace):
    few = {
        "search": {"pruner": "none"},
        "budget": {"trials": 4, "per_trial": {"epochs": 2}},
        "settings": {"pause": 0.0, "fragile": False},
    }
    for name in ("toy", "other"):
        workplace.write(study=name, **few)
        workplace.call("run", "study.yaml", "--checkpoints", "shared")
    workplace.call(
        "run", "study.yaml", "--checkpoints", "shared", "--storage", "sqlite:///second.db"
    )
    assert "no problems found" in workplace.ask("db", "check")
    assert "no problems found" in workplace.ask("db", "check", "--storage", "sqlite:///second.db")
    homes = sorted(path.name.rpartition("-")[0] for path in (workplace.folder / "shared").iterdir())
    assert homes == ["other", "other", "toy"]
    assert "removed its checkpoints, of 4 trials" in workplace.ask("rm", "other", "--yes")
    workplace.call("run", "study.yaml", "--checkpoints", "shared")
    said = workplace.ask("resume", "other", "--checkpoints", "moved", code=2)
    assert "leave --checkpoints out" in said
    workplace.call("resume", "other", "--trials", "5")
    assert "no problems found" in workplace.ask("db", "check")
    assert "no problems found" in workplace.ask("db", "check", "--storage", "sqlite:///second.db")
    assert "removed its checkpoints, of 5 trials" in workplace.ask("rm", "other", "--yes")
    assert len(list((workplace.folder / "shared").iterdir())) == 2


@pytest.mark.parametrize("kind", ["function", "command"])
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
    assert "code or data changed" not in workplace.call("best", "toy")
    rates.write_text("def score(x): return 1000 + float(x)\n")
    refused = workplace.ask("resume", "toy", "--trials", "4", code=2)
    assert "rates.py differs from version 1 of toy, so trials would not compare" in refused
    assert "resume toy --changed begins version 2" in refused
    said = workplace.call("resume", "toy", "--trials", "4", "--changed")
    assert "not as before: rates.py has changed" in said
    assert "version 2 of toy begins: rates.py has changed" in said
    differ = r"ran other code or data.*: trial \d is of version 1 \(since .*; 1 other of ver"
    assert re.search(differ, " ".join(workplace.call("best", "toy").split()))
    assert workplace.ask("trials", "toy", "--where", "version = 2").count("complete") == 1
    assert "rates.py has changed" in workplace.ask("show", "toy", "3")
    page = workplace.folder / "page.md"
    workplace.ask("report", "toy", "-o", str(page))
    assert "versions of the study ran other code" in page.read_text()
    assert "began 3 times; this environment is that of the trial above" in page.read_text()
    assert "no problems found" in workplace.ask("db", "check")
