"""Changes of a command's code, tested by a real driver that is killed meanwhile."""

import json
import subprocess

import pytest

from integration.test_run_and_resume import Workplace
from support.files import pages
from support.files.changed_code import GAIN, LUCKY, METRIC, NOISE, READS, TASK, ChangedCode

STUDY = {
    "study": "guess",
    "task": TASK,
    "settings": {},
    "enqueue": [{"x": 0.3}],
    "budget": {"trials": 1, "per_trial": {"epochs": 1}},
    "search": {"sampler": "random", "pruner": "none"},
    "resources": {"workers": 2},
}


@pytest.fixture
def workplace(shared_ray, tmp_path):
    code = ChangedCode(tmp_path / "work")
    made = Workplace(code.folder, shared_ray)
    made.write(**STUDY)
    code.commit()
    made.code = code
    return made


def test_the_page_can_be_followed(tmp_path, shared_ray):
    folder = ChangedCode(tmp_path / "work")
    shell = pages.Shell(folder.folder, {"HPSEARCH_STORAGE": "sqlite:///hpsearch.db", **shared_ray})
    for block in pages.blocks("revisions"):
        if block.language == "console":
            folder.commit()
        shell.run(block)
    assert " keep " in shell.call("hpsearch show guess --revisions")


def enqueue(workplace: Workplace, change: tuple[str, ...], why: str, code: int = 0) -> str:
    (workplace.folder / "change.diff").write_text(workplace.code.patch(*change))
    return workplace.ask("enqueue", "guess", "--patch", "change.diff", "--why", why, code=code)


def test_a_real_gain_is_kept_noise_and_cheats_are_not_whenever_the_driver_is_killed(workplace):
    workplace.call("run", "study.yaml")
    said = enqueue(workplace, (*METRIC, "measure.py"), "a better metric", code=2)
    assert "measure.py belongs to the harness" in said
    assert "it names data/valid" in enqueue(workplace, READS, "more data", code=2)
    for change, why in ((NOISE, "another order"), (LUCKY, "a lucky seed"), (GAIN, "more data")):
        assert "hpsearch resume guess" in enqueue(workplace, change, why)
    process = workplace.start("resume", "guess")
    workplace.wait_until("SELECT 1 FROM revisions WHERE number = 3 AND pairs >= 1", process)
    process.kill()
    process.communicate()
    workplace.call("resume", "guess")

    told = json.loads(workplace.ask("show", "guess", "--revisions", "--format", "json"))
    found = {each["why"]: each for each in told["revisions"]}
    assert found["another order"]["verdict"] == found["a lucky seed"]["verdict"] == "discard"
    assert found["a lucky seed"]["reason"] == "it ignores its seed: 3 seeds give equal values"
    assert found["more data"]["verdict"] == "keep"
    assert sorted(found["more data"]["harness"]) == ["data/valid", "measure.py"]
    assert found["more data"]["gpu_seconds"] > 0
    assert found["more data"]["better_by"] > found["more data"]["at_least"] > 0
    complete = "role = 'revision' AND state = 'complete'"
    pairs = f"SELECT count(DISTINCT seed), count(*) FROM trials WHERE {complete}"
    ((seeds, runs),) = workplace.rows(pairs)
    assert runs == 2 * seeds
    assert "no problems found" in workplace.ask("db", "check")
    assert "has already ended" in workplace.ask("resume", "guess")

    patch = workplace.ask("show", "guess", "--patch", "3")
    subprocess.run(["git", "apply"], input=patch, text=True, check=True, cwd=workplace.folder)
    assert "k=900" in (workplace.folder / "train.py").read_text()
    again = workplace.ask("enqueue", "guess", "--revision", "HEAD", code=2)
    assert "train.py differs from version 1" in again
