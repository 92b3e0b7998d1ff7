"""Plugins of other packages: the ones that docs/plugins.md shows, and one that does everything
wrong; each in an environment of its own."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from pathlib import Path

import yaml

from support.files import pages
from support.running.programs import run_program

PROGRAM = "from hpsearch.cli.entry import main; main()"
READS = """
import sys
from hpsearch.cli.main import main
for words in sys.argv[1:]:
    try:
        main(words.split())
    except SystemExit as ended:
        assert not ended.code, (words, ended.code)
"""
TASK = """
def train(params, trial):
    trial.report(1, {"loss": (params["x"] - 0.3) ** 2})
"""
STUDY = """
study: tiny
seed: 1
task: {kind: "tiny:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 6, per_trial: {epochs: 1}}
resources: {workers: 1, cpu: 1, gpu: 0}
"""
BROKEN = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "broken"
version = "2.1"
[project.entry-points."hpsearch.plugins"]
broken = "broken:offers"
no_import = "broken.no_import:offers"
[tool.setuptools]
packages = ["broken"]
""",
    "broken/__init__.py": """
from hpsearch.domain.plugins.offers import *
offers = [
    TrackerPlugin("no_options", options="broken.no_import:Options", tracker="broken.parts:Tracker"),
    TrackerPlugin("falls", options="broken.parts:Options", tracker="broken.parts:Falls"),
    CommandPlugin("no_module", "Search", "broken.no_import:command"),
    CommandPlugin("no_type", "Search", "broken.parts:no_type"),
    CommandPlugin("run", "Search", "broken.parts:instead"),
    SourcePlugin("unsure", "a file", takes="broken.parts:unsure", runs="broken.parts:unsure"),
    SamplerPlugin("lost", "broken.parts:Lost"),
    WatchPlugin("enters", "TEXT", "Raises at once.", "broken.parts:Enters"),
    WatchPlugin("looks", "TEXT", "Raises later.", "broken.parts:Looks"),
    WatchPlugin("quiet", "TEXT", "Has a name of ours.", "broken.parts:Looks"),
]
""",
    "broken/no_import.py": 'raise RuntimeError("it cannot be imported")\n',
    "broken/parts.py": """
from optuna.samplers import RandomSampler
from hpsearch.domain.plugins.news import Tracker
from hpsearch.study_file.validation import Model

class Options(Model):
    "Nothing."

class Falls(Tracker):
    target = "nowhere"
    def __init__(self, options, base): pass
    def send_study(self, study): raise RuntimeError("the tracker falls")

class Lost(RandomSampler):
    def sample_independent(self, study, trial, name, distribution):
        raise RuntimeError("the sampler is lost")

class Enters:
    def __init__(self, study, text): pass
    def __enter__(self): raise RuntimeError("it cannot enter")
    def __exit__(self, *raised): pass

class Looks(Enters):
    def __enter__(self): return self
    def __exit__(self, *raised): raise RuntimeError("it cannot leave")
    def begins(self, driver): pass
    def watch(self, study, changes, now): raise RuntimeError("it cannot look")

def no_type(what: "int | str") -> None: pass
def instead() -> None: print("in place of ours")
def unsure(source): raise RuntimeError("is it mine?")
""",
}


class Environment:
    """A fresh environment in a folder, which takes all but the plugins from that of the tests, and
    a study beside it.

    Args:
        folder: Where both are made.
        ray: The environment in which commands join a Ray.
        files: The package with the plugins.
        study: What the study file says beside `STUDY`.
    """

    def __init__(
        self, folder: Path, ray: Mapping[str, str], files: dict[str, str], study: dict[str, object]
    ) -> None:
        self._ray = ray
        venv.create(folder / "environment", symlinks=True)
        self.python = str(folder / "environment" / "bin" / "python")
        self._take_packages()
        package = folder / "package"
        for name, text in files.items():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text(text)
        offline = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", *offline]
        subprocess.run([*pip, str(package)], check=True)
        self.folder = folder / "study"
        self.folder.mkdir()
        (self.folder / "tiny.py").write_text(TASK)
        written = yaml.safe_dump({**yaml.safe_load(STUDY), **study})
        (self.folder / "study.yaml").write_text(written)

    def _take_packages(self) -> None:
        wanted = "import sysconfig; print(sysconfig.get_path('purelib'))"
        place = run_program([self.python, "-c", wanted], check=True).stdout.strip()
        theirs = sysconfig.get_path("purelib")
        (Path(place) / "theirs.pth").write_text(f"import site; site.addsitedir({theirs!r})\n")

    def uninstall(self, package: str) -> None:
        pip = [sys.executable, "-m", "pip", "--python", self.python, "uninstall", "--yes"]
        subprocess.run([*pip, "--quiet", package], check=True)

    def hpsearch(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder of the study."""
        return self._run(PROGRAM, *words)

    def read(self, *commands: str) -> str:
        """Run commands that only read, in one process, and return what they printed."""
        done = self._run(READS, *commands)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **self._ray, "PYTHONWARNINGS": "ignore"}
        run = [self.python, "-c", program, *words]
        return run_program(run, cwd=self.folder, env=environment)


def test_the_plugins_of_the_page_are_installed_and_a_study_uses_both(tmp_path, shared_ray):
    blocks = pages.blocks("plugins")
    files = {each.marks["file"]: each.text for each in blocks if "file" in each.marks}
    assert max(len(files[f"lab/{name}.py"].splitlines()) for name in ("lines", "near")) <= 40
    there = Environment(tmp_path, shared_ray, files, yaml.safe_load(files["search.yaml"]))
    version = there.hpsearch("--version").stdout.splitlines()
    assert version[1:] == ["lab (lab-plugins 1.0)"]
    checked = there.hpsearch("check", "study.yaml")
    assert checked.returncode == 0, checked.stderr
    assert "plugins of other packages: lab (lab-plugins 1.0)" in checked.stderr
    ran = there.hpsearch("run", "study.yaml", "--quiet")
    assert ran.returncode == 0, ran.stderr
    assert "left out" not in ran.stderr
    out = there.folder / "out"
    sent = {int(each.stem): json.loads(each.read_text()) for each in out.glob("*.json")}
    assert sorted(sent) == list(range(6))
    assert {each["state"] for each in sent.values()} == {"complete"}
    assert all(each["loss"] == (each["params"]["x"] - 0.3) ** 2 for each in sent.values())
    best = min(abs(sent[n]["params"]["x"] - 0.3) for n in range(5))
    assert abs(sent[5]["params"]["x"] - 0.3) <= 0.3 * 0.7 + 0.7 * best
    assert "drawn by near" in there.read("trials --format json", "show tiny 3")
    there.uninstall("lab-plugins")
    there.read("ls", "status", "best", "show 3", "export --to trials.csv")
    refused = there.hpsearch("resume", "tiny", "--trials", "7")
    assert refused.returncode == 2
    assert "near is offered by no plugin that is installed" in refused.stderr


def test_a_plugin_that_raises_never_ends_a_study(tmp_path, shared_ray):
    study = {"track": ["falls"], "search": {"sampler": "lost", "pruner": "none"}}
    there = Environment(tmp_path, shared_ray, BROKEN, study)
    asked = there.hpsearch("--help")
    assert asked.returncode == 0
    assert "no_type" not in asked.stdout
    ran = there.hpsearch("run", "study.yaml", "-q", "--enters", "now", "--looks", "now")
    assert ran.returncode == 0, ran.stderr
    assert "study tiny has ended: all 6 trials have ended" in ran.stderr
    for what in (
        "plugin no_import is left out: RuntimeError: it cannot be imported",
        "tracker no_options is left out: RuntimeError: it cannot be imported",
        "command no_module is left out: RuntimeError: it cannot be imported",
        "command no_type is left out: AssertionError: Typer currently doesn't support Union",
        "command run is left out: AssertionError: there is a command with this name",
        "track: falls does not work: RuntimeError: the tracker falls",
        "sampler lost is left out: RuntimeError: the sampler is lost",
        "watch --enters is left out: RuntimeError: it cannot enter",
        "watch --looks is left out: RuntimeError: it cannot look",
        "--looks",
    ):
        assert ran.stderr.count(what) == 1, f"{what}\n{ran.stderr}"
    refused = there.hpsearch("import", "runs.db", "--name", "tiny")
    assert "source unsure is left out: RuntimeError: is it mine?" in refused.stderr
    assert refused.returncode == 2
    assert there.hpsearch("resume", "tiny", "--trials", "7").returncode == 0
