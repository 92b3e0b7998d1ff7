"""What the page on asking for trials shows is so."""

import inspect
import re
from pathlib import Path

import hpsearch
from hpsearch.asking.trial import AskedTrial
from support.files import pages

PAGE = pages.read("ask-and-tell")


def test_its_programs_run_one_after_another(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pages.Shell(tmp_path).walk("ask-and-tell")
    assert capsys.readouterr().out == "all 20 trials have ended\n"
    found = {}
    for name in ("digits", "resumed", "careful"):
        with hpsearch.open("sqlite:///hpsearch.db", name) as study:
            found[name] = study.trials()
    assert len(found["digits"]) == 22
    assert set(found["digits"]["state"]) >= {"complete", "failed"}
    assert set(found["careful"]["state"]) == {"complete"}
    best = found["resumed"].sort_values("value").iloc[-1]
    assert f'"steps": {best["resource"]:g}' in Path(best["best_checkpoint"]).read_text()


def test_every_attribute_of_a_trial_is_named():
    stated = re.findall(r"^    (\w+):", str(inspect.getdoc(AskedTrial)), flags=re.MULTILINE)
    assert "resume_from" in stated
    for name in (*stated, "report"):
        assert f"`trial.{name}" in PAGE, name
