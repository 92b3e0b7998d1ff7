"""What tests of reports share: a database that no test changes."""

import pytest

from support.studies import reported as reported_studies


@pytest.fixture(scope="session")
def hostile_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with a study whose every text is hostile."""
    url = f"sqlite:///{tmp_path_factory.mktemp('hostile')}/study.db"
    reported_studies.hostile(url)
    return url
