"""The dashboard as people use it: with a keyboard alone, on a study that goes on."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("playwright")
pytest.importorskip("starlette")

from playwright.sync_api import Browser, Page, expect

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.store.reading.queries import find_study, trial_detail
from hpsearch.store.store import Store
from support.patience import PATIENCE_MS
from support.running.dashboards import serving, site_behind_gate
from support.studies.reported import ordinary
from support.studies.slow import driven_slowly

expect.set_options(timeout=PATIENCE_MS)
MOST_KEYS = 60


@pytest.fixture
def page(people: Browser) -> Iterator[Page]:
    """A page whose console must stay empty, with the strict policy in force."""
    context = people.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    context.close()
    assert said == [], "nothing that a page needs is forbidden or fails"


def reach(page: Page, wanted: str) -> None:
    """Press Tab until the focus is on something that is called so."""
    called = ""
    for _ in range(MOST_KEYS):
        page.keyboard.press("Tab")
        called = page.evaluate(
            "(e => (e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent)"
            ".trim())(document.activeElement)"
        )
        if called == wanted:
            return
    raise AssertionError(f"{wanted!r} cannot be reached; the last was {called!r}")


def asked(page: Page) -> Any:
    """The table of what was asked of the study."""
    return page.get_by_role("region", name="What was asked of it")


@pytest.mark.thorough
def test_with_the_keyboard_a_person_follows_and_changes_a_study_that_goes_on(page, sqlite_url):
    with driven_slowly(sqlite_url), closing(Store.open(sqlite_url)) as store:
        app = site_behind_gate(store, allow_changes=True)
        with serving(app) as port:
            page.goto(f"http://127.0.0.1:{port}/")
            reach(page, "slow")
            page.keyboard.press("Enter")
            expect(page.get_by_role("heading", name="Now")).to_be_visible()
            _stays_where_it_is_looked_at(page)
            running = page.get_by_role("region", name="Running trials").get_by_role("link")
            number = running.first.inner_text()

            page.goto(f"{page.url.partition('?')[0]}/trials/{number}")
            reach(page, "Stop this trial")
            page.keyboard.press("Enter")
            reach(page, f"Stop trial {number}")
            page.keyboard.press("Enter")
            expect(asked(page)).to_contain_text(f"stop trial {number}")
            expect(asked(page)).to_contain_text("done")

            reach(page, "Try a configuration")
            page.keyboard.press("Enter")
            reach(page, "x")
            page.keyboard.type("0.25")
            reach(page, "kind")
            page.keyboard.press("e")
            reach(page, "Why (for the record)")
            page.keyboard.type("a hunch")
            page.keyboard.press("Enter")
            expect(asked(page)).to_contain_text("try kind=elm x=0.25 (a hunch)")
            tried_row = asked(page).get_by_role("row").filter(has_text="a hunch")
            expect(tried_row).to_contain_text(re.compile(r"trial \d+"))
        history = store.load("slow")
        with store.reading() as connection:
            decided = trial_detail(
                connection, find_study(connection, "slow"), int(number)
            ).decisions
    stopped = history.trials[int(number)]
    assert stopped.state is State.PRUNED
    assert decided[-1]["why"] == "stopped by dashboard at 127.0.0.1"
    (tried,) = (trial for trial in history.trials if trial.role is Role.PROPOSED)
    assert tried.params == {"x": 0.25, "kind": "elm"}


def _stays_where_it_is_looked_at(page: Page) -> None:
    """A page keeps up with its study, and neither the focus nor what is in view moves."""
    expect(page.get_by_role("heading", name="Learning curves")).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    hidden = page.get_by_role("button", name="not ended").first
    hidden.press("Enter")
    page.get_by_role("link", name="All trials").focus()
    page.evaluate("window.scrollTo(0, 300)")
    report = page.locator("[data-live][data-slow]").first
    before = report.get_attribute("data-revision")
    chart = page.locator("[data-figure]").first.element_handle()
    expect(report).not_to_have_attribute("data-revision", before or "")
    assert page.evaluate("document.activeElement.textContent") == "All trials"
    assert page.evaluate("window.scrollY") == 300
    assert chart is not None
    assert chart.evaluate("chart => chart.isConnected"), "a chart is changed in its place"
    expect(hidden).to_have_attribute("aria-pressed", "false")
    hidden.press("Enter")


def test_trials_are_ticked_and_stand_side_by_side(page, sqlite_url):
    ordinary(sqlite_url)
    with closing(Store.open(sqlite_url)) as store:
        app = site_behind_gate(store, allow_changes=False)
        with serving(app) as port:
            page.goto(f"http://127.0.0.1:{port}/studies/1/trials")
            for number in (0, 3):
                reach(page, f"Compare trial {number}")
                page.keyboard.press("Space")
            page.get_by_role("button", name="Compare those that are ticked").press("Enter")
            expect(page.get_by_role("heading", level=1)).to_have_text("Trials 0, 3 of flowers")
            expect(page.locator(".js-plotly-plot")).to_be_visible()
            expect(page.get_by_role("region", name="Parameters that differ")).to_be_visible()


def test_the_first_key_leads_past_the_links_to_the_content(page, sqlite_url):
    ordinary(sqlite_url)
    with (
        closing(Store.open(sqlite_url)) as store,
        serving(site_behind_gate(store, allow_changes=False)) as port,
    ):
        page.goto(f"http://127.0.0.1:{port}/")
        page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the content")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.get_by_role("region", name="Studies")).to_be_focused()


def test_a_page_says_that_its_study_is_gone_and_that_its_server_is_silent(people, sqlite_url):
    for name in ("oaks", "elms"):
        ordinary(sqlite_url, name)
    context = people.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    status = page.locator("#news")
    with closing(Store.open(sqlite_url)) as store:
        with serving(site_behind_gate(store, allow_changes=False)) as port:
            page.goto(f"http://127.0.0.1:{port}/studies/1")
            expect(page.get_by_role("heading", name="Learning curves")).to_be_visible()
            deleting = threading.Thread(target=store.delete_study, args=(1,))
            deleting.start()
            deleting.join()
            expect(status).to_have_text("This is not in the database any more: it was deleted.")
            page.goto(f"http://127.0.0.1:{port}/studies/2")
            expect(page.get_by_role("heading", name="Learning curves")).to_be_visible()
        expect(status).to_contain_text("does not answer")
        expect(page.get_by_role("heading", name="Learning curves")).to_be_visible()
    context.close()
