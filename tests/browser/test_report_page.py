"""A report in a real browser: it draws its charts, says nothing on the console, asks nobody for
anything, and runs no text of others."""

import re

import pytest

from hpsearch.cli.main import main
from support.studies import reported as reported_studies

pytest.importorskip("plotly")


def test_a_report_of_hostile_texts_draws_its_charts_and_fetches_nothing(visit, tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    reported_studies.hostile(url)
    to = tmp_path / "report.html"
    with pytest.raises(SystemExit) as ended:
        main(["report", "-o", str(to), "--storage", url])
    assert ended.value.code == 0
    page = visit(to.as_uri())
    assert page.title == f"{reported_studies.NAME}: study report"
    assert 'data-charts="drawn"' in page.html
    charts = len(re.findall(r"data-figure=", page.html))
    assert charts == 5
    assert len(re.findall(r'class="[^"]*svg-container', page.html)) == charts
    # The page forbids itself every request, so that one that is tried is a complaint here.
    assert "CONSOLE" not in page.console, page.console
    written = re.sub(r"<script.*?</script>", "", page.html, flags=re.DOTALL)
    assert re.findall(r'(?:src|href)="([^"]*)"', written) == ["data:,", "#content"]
    assert reported_studies.CLOSING in page.text
