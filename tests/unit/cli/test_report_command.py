"""`hpsearch report`: where it writes, what it refuses, and what it needs."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hpsearch
from hpsearch.api import StudyReader
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.errors import UserError
from support.studies import reported as reported_studies

Run = Callable[..., Any]
Save = Callable[..., None]


@pytest.fixture
def ordinary_url(tmp_path: Path) -> str:
    """A database with a study that has a confirmed winner."""
    url = f"sqlite:///{tmp_path}/ordinary.db"
    reported_studies.ordinary(url)
    return url


def test_a_report_is_one_file_and_says_what_it_wrote(run, flowers, tmp_path):
    to = tmp_path / "report.html"
    said = run("report", flowers, "-o", str(to))
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith(f"wrote {to} (4.")
    page = to.read_text("utf-8")
    assert page.count("Plotly.newPlot") >= 1
    assert "accuracy 0.87" in page
    assert [path.name for path in tmp_path.glob("*report*")] == ["report.html"]


def test_markdown_goes_to_a_file_or_to_stdout(run, flowers, tmp_path):
    said = run("report")
    assert said.err == "study flowers\n"
    assert "## `accuracy` 0.87, from 4 trials; mean of 2 trainings\n" in said.out
    assert "- `hpsearch train --trial 2 flowers`" in said.out
    assert "| diverged | 1 | 1 | `loss is nan` |" in said.out
    to = tmp_path / "report.md"
    assert run("report", "-o", str(to)).code == 0
    assert to.read_text("utf-8").splitlines()[:-1] == said.out.splitlines()[:-1]


def test_a_report_to_others_does_not_name_the_database(run, ordinary_url, tmp_path):
    for name in ("sent.md", "sent.html"):
        assert run("report", "-o", str(tmp_path / name), "--storage", ordinary_url).code == 0
        text = (tmp_path / name).read_text("utf-8")
        assert "hpsearch " in text
        assert "--storage" not in text
        assert "ordinary.db" not in text


@pytest.mark.parametrize(
    ("arguments", "what", "remedy"),
    [
        (("-o", "report.pdf"), "reports are .html or .md files", "-o report.html"),
        (("-o", "report"), "reports are .html or .md files", "-o report.html"),
        (("-o", "nowhere/report.md"), "nowhere/report.md cannot be written", "check the folder"),
        (("-o", "taken.md"), "taken.md already exists", "--force"),
        (("-o", f"{'x' * 300}.md"), "cannot be written", "choose another name"),
    ],
)
def test_a_place_that_cannot_be_is_refused(
    run, flowers, tmp_path, monkeypatch, arguments, what, remedy
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.md").write_text("mine")
    said = run("report", flowers, *arguments)
    assert said.code == 2
    assert what in said.err
    assert remedy in said.err
    assert (tmp_path / "taken.md").read_text() == "mine"
    assert not list(tmp_path.glob("**/*.unfinished"))


def test_figures_in_a_notebook_are_those_of_the_report(flowers, sqlite_url):
    with hpsearch.open(sqlite_url, flowers) as study:
        assert "accuracy" in study.plot_best_so_far().layout.yaxis.title.text
        assert [trace.name for trace in study.plot_curves().data][-1] == "winner"
        assert study.plot_parallel_coordinates().data
        assert len(study.plot_slices().data) == 6
        assert "The configuration (trial 2)" in study._repr_html_()
        with pytest.raises(UserError, match="nothing to draw"):
            study.plot_importances()


@pytest.mark.parametrize("page", ["report.md", "commands.md"])
def test_the_snippet_of_a_page_runs(page, ordinary_url, monkeypatch):
    text = (Path(__file__).parents[3] / "docs" / page).read_text("utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    opened = hpsearch.open
    monkeypatch.setattr(hpsearch, "open", lambda url, name: opened(ordinary_url, "flowers"))
    exec(snippet, {})
    plots = set(re.findall(r"study\.(plot_\w+)", snippet))
    assert page != "report.md" or plots == {n for n in dir(StudyReader) if n.startswith("plot_")}


def test_a_study_without_values_has_nothing_to_draw_and_still_a_face(save, sqlite_url):
    save("young", [Trial(0, State.QUEUED, {"lr": 0.1})])
    with hpsearch.open(sqlite_url, "young") as study:
        for plot in (study.plot_best_so_far, study.plot_curves, study.plot_slices):
            with pytest.raises(UserError, match="hpsearch status young"):
                plot()
        assert "its trial has no value" in study._repr_html_()
