"""The report as a person handles it: read on a phone, with a keyboard alone, its charts looked at
as pixels."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("playwright")
pytest.importorskip("plotly")
pytest.importorskip("PIL")

from PIL import Image
from playwright.sync_api import Browser, Page

from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store
from hpsearch.views.report.data import report_data
from hpsearch.views.report.page import html_report
from support.patience import PATIENCE_MS
from support.studies.looks import confirmed

PHONE = 390
LEAST_DRAWN = 0.003
"""A share of a chart's pixels; a frame and its labels alone have hues of grey only."""
COLOURFUL = 40
"""Between the strongest and the weakest of red, green and blue."""
MOST_KEYS = 80

FOCUSED = """() => {
    const element = document.activeElement;
    const style = getComputedStyle(element);
    return {
        is_page: element === document.body,
        top: element.getBoundingClientRect().top + window.scrollY,
        label: element.getAttribute('aria-label') || element.textContent,
        ring: style.outlineStyle === 'solid' ? parseFloat(style.outlineWidth) : 0,
    };
}"""
SCROLLED = """() => [...document.querySelectorAll('*')]
    .filter(each => each.scrollWidth > each.clientWidth + 1 && each.clientWidth
        && ['auto', 'scroll'].includes(getComputedStyle(each).overflowX))
    .map(each => each.getAttribute('aria-label'))"""
COVERED = """() => [...document.querySelectorAll('.legend')].filter(legend => {
    const own = legend.getBoundingClientRect();
    return [...legend.closest('figure').querySelectorAll('h3, .main-svg')].some(other => {
        const its = other.getBoundingClientRect();
        return own.top < its.bottom - 1 && its.top < own.bottom - 1;
    });
}).map(legend => legend.textContent)"""
TRACES = "[data-figure='figure-result-2'] .scatterlayer .trace"


@pytest.fixture(scope="module")
def report(people: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The report of a study with a confirmed winner on a phone, under its own policy; its console
    must stay empty."""
    folder = tmp_path_factory.mktemp("report")
    path: Path = folder / "report.html"
    url = f"sqlite:///{folder}/study.db"
    name = confirmed(url)
    with closing(Store.open(url)) as store, store.reading() as connection:
        path.write_text(
            html_report(report_data(connection, find_study(connection, name), time.time()))
        )
    context = people.new_context(viewport={"width": PHONE, "height": 800}, color_scheme="dark")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-charts=drawn]")
    yield page
    context.close()
    assert said == []


def test_every_chart_is_really_drawn(report):
    charts = report.locator("[data-figure]")
    assert charts.count() == 5
    for chart in charts.all():
        assert _colourful(chart.screenshot()) > LEAST_DRAWN, chart.get_attribute("aria-label")


def _colourful(picture: bytes) -> float:
    """The share of the pixels of a picture that are not grey."""
    with Image.open(io.BytesIO(picture)) as opened:
        pixels = np.asarray(opened.convert("RGB"), int)
    return float((pixels.max(axis=2) - pixels.min(axis=2) > COLOURFUL).mean())


def test_no_legend_covers_its_chart_or_its_title(report):
    assert report.locator(".legend").count() == 3
    assert report.evaluate(COVERED) == []
    assert report.locator("svg g.legend").count() == 0, "Plotly draws none of its own"


def test_tab_leads_down_the_page_to_all_that_scrolls_and_marks_where_it_is(report):
    report.evaluate("document.activeElement.blur(), window.scrollTo(0, 0)")
    stops = list(_stops(report))
    assert stops[0]["label"] == "Skip to the content"
    tops = [stop["top"] for stop in stops[1:]]
    assert tops == sorted(tops)
    assert all(stop["ring"] >= 2 for stop in stops), stops
    scrolled = report.evaluate(SCROLLED)
    assert scrolled
    assert set(scrolled) <= {stop["label"] for stop in stops}


def _stops(page: Page) -> Iterator[dict[str, Any]]:
    """What the focus is on after each press of Tab, until it leaves the page."""
    for _ in range(MOST_KEYS):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if stop["is_page"]:
            return
        yield stop
    raise AssertionError("the focus does not leave the page")


def test_a_key_on_the_legend_hides_curves_and_shows_them_again(report):
    curves = report.locator("section[aria-labelledby=result]")
    button = curves.get_by_role("button", name="paused or pruned")
    drawn = report.locator(TRACES).count()
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert report.locator(TRACES).count() == drawn - 1
    button.press("Space")
    assert button.get_attribute("aria-pressed") == "true"
    assert report.locator(TRACES).count() == drawn
