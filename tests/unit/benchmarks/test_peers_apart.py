"""Peers with an environment and a process of their own: what they are told, and how they fail."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from hpsearch.search.rungs import Verdict

PROGRAM = '''
import sys
from pathlib import Path
from conversation import Job, serve


class Scripted:
    """Two trials: the first wants to be told at 2 and 4, the second in full. What it hears is
    written into the file of its argument."""

    def __init__(self, setting):
        print("a library that prints")
        assert setting.space["place"]["choices"] == ["0"]
        assert (setting.total, setting.seed, setting.trials, setting.workers) == (9, 5, 40, 2)
        self.told, self.asked = Path(sys.argv[1]), 0

    def ask(self):
        self.asked += 1
        if self.asked > 3:
            return None
        trial = [0, 1, 0][self.asked - 1]
        params = {"place": "0", "rate": [0.1, 0.2][trial]}
        return Job(trial, params, [2, 9, 9][self.asked - 1])

    def tell(self, trial, level, value, ended):
        print("and prints")
        with self.told.open("a") as file:
            file.write(f"{trial} {level} {value:g} {ended}\\n")
        if value < 0:
            raise ValueError("below zero")
        return 4 if level == 2 else None


serve(Scripted)
'''


class Task:
    """As much of a task as a peer is told."""

    def __init__(self) -> None:
        self.total = 9
        self.space = {
            "rate": {"type": "float", "low": 0.1, "high": 1.0, "log": True},
            "place": {"type": "categorical", "choices": [None]},
        }


@pytest.fixture
def apart(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the scripted peer, in the environment of the tests."""
    remote = bench("races.remote_peers")
    shutil.copy(remote.PROGRAMS / "conversation.py", tmp_path)
    (tmp_path / "scripted.py").write_text(PROGRAM)
    monkeypatch.setattr(remote, "PROGRAMS", tmp_path)
    monkeypatch.setattr(remote, "python_of", lambda name, cache: Path(sys.executable))
    program = remote.Program("none", "scripted.py", (str(tmp_path / "told"),))
    terms = bench("races.race").Terms(40, 2)
    return remote.RemotePeer(program, tmp_path, Task(), 5, terms)


def test_a_program_is_told_where_it_wants_to_be_and_trials_continue(
    apart: Any, tmp_path: Path
) -> None:
    with apart as peer:
        first, second = peer.ask(), peer.ask()
        assert (first.trial, first.params) == (0, {"place": None, "rate": 0.1})
        assert second.trial == 1
        heard = [peer.report(0, level, level / 10) for level in (1, 2, 3, 4)]
        assert heard == [*[Verdict.CONTINUE] * 3, Verdict.PAUSE]
        assert peer.report(1, 8, 0.5) is Verdict.CONTINUE
        assert peer.ask() == first, "it continues"
        assert peer.report(0, 5, 0.5) is Verdict.CONTINUE
        peer.finish(0, 9, 0.9)
        assert peer.ask() is None
        assert peer.processor_s() > 0
    told = (tmp_path / "told").read_text().splitlines()
    assert told == ["0 2 0.2 False", "0 4 0.4 False", "0 9 0.9 True"]
    assert apart._process.returncode == 0


def test_a_program_that_dies_leaves_its_last_words(bench: Any, apart: Any) -> None:
    died = bench("races.remote_peers").Died
    with apart as peer:
        peer.ask()
        with pytest.raises(died, match="ValueError: below zero"):
            peer.finish(0, 1, -1.0)


@pytest.mark.thorough
def test_an_environment_is_made_once_and_again_when_its_pins_change(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments = bench("races.environments")
    monkeypatch.setattr(environments, "PINS", tmp_path)
    (tmp_path / "empty.txt").write_text("# nothing\n")
    environments.prepare("empty", tmp_path / "cache")
    python = environments.python_of("empty", tmp_path / "cache")
    made = python.stat().st_mtime_ns
    environments.prepare("empty", tmp_path / "cache")
    assert python.stat().st_mtime_ns == made
    (tmp_path / "empty.txt").write_text("# nothing else\n")
    assert environments.python_of("empty", tmp_path / "cache") != python


@pytest.mark.thorough
def test_a_peer_whose_packages_cannot_be_installed_is_left_out_with_the_reason(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environments, terms = bench("races.environments"), bench("races.race").Terms()
    monkeypatch.setattr(environments, "PINS", tmp_path)
    (tmp_path / "hebo.txt").write_text("--no-index\nnothing-of-this-name==1.0\n")
    entries = [
        bench("races.schedule").Entry(method, "taskset", "small", seed, terms, "accuracy")
        for method in ("random", "hebo")
        for seed in range(2)
    ]
    assert bench("anytime").able(entries, tmp_path / "cache") == entries[:2]
    said = capsys.readouterr().err
    assert said.count("hebo is left out: pip cannot install hebo.txt: ERROR:") == 1
    assert "nothing-of-this-name==1.0" in said
    folder = environments.python_of("hebo", tmp_path / "cache").parent.parent
    assert not (folder / environments.READY).exists()


def test_every_peer_that_runs_apart_has_its_program_and_its_pins(bench: Any) -> None:
    programs, pins = bench("races.remote_peers").PROGRAMS, bench("races.environments").PINS
    for program in bench("races.peers").APART.values():
        assert (programs / program.file).is_file()
        lines = (pins / f"{program.environment}.txt").read_text().splitlines()
        assert len(lines) > 10
        assert all("==" in line for line in lines)
