"""How pages look in each state that a study can be in: whoever sees little, reads on a phone or
listens to a page finds everything (axe-core's rules), and nothing is wider than the screen."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("axe_playwright_python")
pytest.importorskip("starlette")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from hpsearch.store.reading.queries import study_of_id
from hpsearch.store.store import Store
from hpsearch.views.report.data import report_data
from hpsearch.views.report.page import html_report
from support.patience import PATIENCE_MS
from support.running.dashboards import serving, site_behind_gate
from support.studies.looks import LOOKS, save_all

RULES = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    }
}
SCREENS = [(1280, "light"), (390, "dark")]
DRAWN = """() => document.documentElement.dataset.charts === 'drawn'
    && !document.body.innerText.includes('The report is being made')"""

Look = Callable[[str], None]
"""Opens an address and looks at it."""


@pytest.fixture(scope="module")
def looks_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with a study in each state; their ids begin with 1, in the order of `LOOKS`."""
    url = f"sqlite:///{tmp_path_factory.mktemp('looks')}/study.db"
    save_all(url)
    return url


@pytest.fixture(scope="module")
def site(looks_url: str) -> Iterator[str]:
    """The dashboard on that database."""
    with closing(Store.open(looks_url)) as store:
        app = site_behind_gate(store, allow_changes=True)
        with serving(app) as port:
            yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module", params=SCREENS, ids=["desktop", "phone"])
def look(request: Any, people: Browser) -> Iterator[Look]:
    """Looks at pages on one of two screens."""
    width, scheme = request.param
    # axe-core is put into the page by its driver, which no policy allows.
    context = people.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))

    def at(address: str) -> None:
        page.goto(address)
        if page.locator("[data-figure], [data-slow]").count():
            page.wait_for_function(DRAWN)
        assert _wrong(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert failed == []

    yield at
    context.close()


def _wrong(page: Page) -> list[tuple[str, str]]:
    """The rules that a page breaks, each with the first place."""
    broken = Axe().run(page, options=RULES).response["violations"]
    return [(each["id"], str(each["nodes"][0]["target"])) for each in broken]


STUDIES = {name: number for number, name in enumerate(LOOKS, 1)}


THOROUGH = pytest.mark.thorough


@pytest.mark.parametrize(
    "state",
    [pytest.param(each, marks=THOROUGH if each in ("one", "many") else ()) for each in LOOKS],
)
def test_the_page_of_a_study(state, look, site):
    look(f"{site}/studies/{STUDIES[state]}")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"/studies/{STUDIES['nothing']}/trials",
        f"/studies/{STUDIES['long']}/trials",
        f"/studies/{STUDIES['long']}/trials?where=nonsense",
        f"/studies/{STUDIES['long']}/trials/5",
        f"/studies/{STUDIES['many']}/trials/1",
        f"/studies/{STUDIES['running']}/trials/24",
        f"/studies/{STUDIES['long']}/compare?trial=1&trial=5&trial=7",
        "/studies/99",
        "/nowhere",
    ],
)
def test_every_other_page(path, look, site):
    look(site + path)


@pytest.mark.parametrize(
    "state",
    [
        "long",
        "confirmed",
        pytest.param("several", marks=THOROUGH),
        pytest.param("many", marks=THOROUGH),
    ],
)
def test_the_report(state, look, looks_url, tmp_path):
    with closing(Store.open(looks_url)) as store, store.reading() as connection:
        study = study_of_id(connection, STUDIES[state])
        data = report_data(connection, study, time.time())
    report = tmp_path / "report.html"
    report.write_text(html_report(data), encoding="utf-8")
    look(report.as_uri())


def test_a_database_without_studies(look, sqlite_url):
    with (
        closing(Store.open(sqlite_url)) as store,
        serving(site_behind_gate(store, allow_changes=False)) as port,
    ):
        look(f"http://127.0.0.1:{port}/")
