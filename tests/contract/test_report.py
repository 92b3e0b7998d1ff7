"""A report says the same of the same study, whichever database it is in."""

from contextlib import closing

from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store
from hpsearch.views.report.data import report_data
from hpsearch.views.report.page import markdown_report
from support.studies import reported as reported_studies


def told(url: str) -> str:
    """The report of the ordinary study and of the hostile one, in a database."""
    texts = []
    for name in (reported_studies.ordinary(url), reported_studies.hostile(url)):
        with closing(Store.open(url)) as store, store.reading() as connection:
            data = report_data(connection, find_study(connection, name), reported_studies.BEGAN)
        texts.append(markdown_report(data))
    return "\n".join(texts)


def test_both_databases_tell_the_same(sqlite_url, postgresql_url):
    assert told(sqlite_url) == told(postgresql_url)
