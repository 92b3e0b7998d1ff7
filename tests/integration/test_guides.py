"""The pages for newcomers: every command and snippet of theirs is run, in their order."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
import yaml
from optuna.storages import RDBStorage

from hpsearch.domain.records import StudyState
from hpsearch.plugins.optuna.storages import UNPOOLED
from integration.test_examples import write_tiny_model
from support import thoroughness
from support.files import pages
from support.studies.reported import SPACE, ordinary_trials, save, spec_of


@pytest.fixture
def shell(tmp_path: Path, shared_ray: Mapping[str, str]) -> pages.Shell:
    """A folder with the examples in it, whose data have a tenth of their rows."""
    shutil.copytree(pages.ROOT / "examples", tmp_path / "examples")
    script = tmp_path / "examples" / "reviews.py"
    text = script.read_text()
    assert "ROWS = 2000" in text
    script.write_text(text.replace("ROWS = 2000", "ROWS = 200"))
    environment = {"HPSEARCH_STORAGE": "sqlite:///hpsearch.db", "COLUMNS": "120", **shared_ray}
    return pages.Shell(tmp_path, environment)


@pytest.mark.thorough
def test_the_quickstart_can_be_followed(shell):
    smaller = "resources: {workers: 1}\nbudget:\n  trials: 2"
    shell.instead = {"budget:\n  trials: 16": smaller}
    if thoroughness.quick:
        shell.instead |= {"hpsearch train reviews": "hpsearch ls"}
    shell.walk("quickstart")
    assert (shell.folder / "report.html").stat().st_size > 1_000_000
    assert thoroughness.quick or (shell.folder / "models" / "reviews" / "v1").is_dir()


WANDB = """\
"Name","State","Created","Runtime","lr","depth","val_loss"
"a","finished","2026-01-02T03:04:05.000Z","9","0.001","2","0.61"
"b","finished","2026-01-02T03:04:15.000Z","9","0.01","3","0.43"
"c","finished","2026-01-02T03:04:25.000Z","9","0.05","4","0.52"
"d","crashed","2026-01-02T03:04:35.000Z","9","0.09","8",""
"e","finished","2026-01-02T03:04:45.000Z","9","0.0002","6","0.83"
"""
RATES = (0.001, 0.003, 0.01, 0.03)


def past_runs_of_others(folder: Path) -> None:
    """What the recipe on last month's search takes for given."""
    (folder / "project.csv").write_text(WANDB)
    settings = [({"learning_rate": rate, "depth": 2}, rate * 10) for rate in RATES]
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        study_name="last-month",
        storage=RDBStorage(f"sqlite:///{folder}/optuna.db", UNPOOLED),
        direction="minimize",
    )
    rates = optuna.distributions.FloatDistribution(1e-4, 1e-1, log=True)
    for params, loss in settings:
        kept = {"learning_rate": params["learning_rate"]}
        study.add_trial(
            optuna.trial.create_trial(
                params=kept, distributions={"learning_rate": rates}, value=loss
            )
        )


def texts_with_labels(folder: Path) -> None:
    """Data for the recipes on texts, one of whose classes is rare, and a small model of theirs."""
    rows = [f"some words and number {n}" for n in range(60)]
    opinions = "".join(f"{row},{'good' if n % 2 else 'bad'}\n" for n, row in enumerate(rows))
    verdicts = "".join(
        f"{row},{'fraud' if n % 12 == 0 else 'fine'}\n" for n, row in enumerate(rows)
    )
    (folder / "reviews.csv").write_text(f"review,opinion\n{opinions}")
    (folder / "fraud.csv").write_text(f"message,verdict\n{verdicts}")
    write_tiny_model(folder / "models" / "distilbert", rows)


LOCAL = {"distilbert-base-uncased": "models/distilbert", "max_length: 128": "max_length: 32"}


@pytest.mark.thorough
def test_the_recipes_can_be_followed(shell):
    past_runs_of_others(shell.folder)
    texts_with_labels(shell.folder)
    write_first(shell)
    shell.instead = (
        LOCAL
        | {"--train mine.csv": "--train mine.csv --model scratch"}
        | {"postgresql://ann@db.example.com/hpsearch": "sqlite:///hpsearch.db"}
    )
    shell.walk("recipes")
    said = shell.call("hpsearch check next.yaml")
    assert "from-wandb (4 trials), from-optuna (4 trials)" in said
    assert {"number", "value"} <= set(shell.names["trials"].columns)


def write_first(shell: pages.Shell) -> None:
    """Write the files of the recipes, some of which are shown below the commands on them."""
    for block in pages.blocks("recipes"):
        if "file" in block.marks:
            shell.run(block)


def test_the_page_of_commands_can_be_followed(tmp_path):
    url = f"sqlite:///{tmp_path}/hpsearch.db"
    spec = spec_of("reviews", SPACE)
    save(url, "reviews", ordinary_trials(), spec)
    shell = pages.Shell(tmp_path, {"HPSEARCH_STORAGE": url})
    shell.walk("commands")
    for where in re.findall(r'`--where "(.*?)"`', pages.read("commands")):
        shell.call(f'hpsearch trials reviews --where "{where}"')


def test_the_pages_on_a_study_that_runs_and_on_reports_can_be_followed(tmp_path):
    url = f"sqlite:///{tmp_path}/hpsearch.db"
    space = {**SPACE, "dropout": {"type": "float", "low": 0.0, "high": 0.5}}
    spec = spec_of(
        "reviews", space, budget={"trials": 40, "gpu_hours": 2, "per_trial": {"epochs": 9}}
    )
    trials = [replace(each, params={**each.params, "dropout": 0.1}) for each in ordinary_trials(20)]
    save(url, "reviews", trials, spec, state=StudyState.INTERRUPTED, base=str(tmp_path))
    shell = pages.Shell(tmp_path, {"HPSEARCH_STORAGE": url})
    shell.walk("report")
    asking = re.findall(r"^\| `(hpsearch .+?)` \|", pages.read("while-it-runs"), re.MULTILINE)
    only_asks = [each for each in asking if not each.startswith("hpsearch resume")]
    assert len(only_asks) == 4
    said = [shell.call(command) for command in only_asks]
    assert all("no driver" in each or "nobody drives" in each for each in said), said
    shell.walk("while-it-runs")


@pytest.mark.thorough
def test_the_readme_can_be_followed(shell):
    example = shell.folder / "examples" / "digits.yaml"
    study = yaml.safe_load(example.read_text())
    study["budget"] = {"trials": 3, "per_trial": {"epochs": 1}}
    example.write_text(yaml.safe_dump(study))
    texts_with_labels(shell.folder)
    reviews = shell.folder / "reviews.csv"
    reviews.write_text(reviews.read_text().replace("opinion", "stars", 1))
    shell.instead = {
        "hpsearch run study.yaml": "hpsearch run study.yaml --workers 1",
        "--text review --label stars": "--text review --label stars --model scratch",
    }
    shell.walk("README")
    assert (shell.folder / "report.html").exists()


def test_only_what_needs_other_machines_is_not_run():
    names = ("README", "quickstart", "recipes", "commands")
    reasons = [reason for name in names for reason in pages.skipped(name)]
    assert len(reasons) <= 5, reasons
    assert all(reasons)
