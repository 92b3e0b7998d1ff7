"""Sources of past runs as other programs write them, and the import of one as a person would do
it."""

from contextlib import closing
from pathlib import Path

import pytest

from hpsearch.cli.main import main
from hpsearch.domain.history import History
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store


def command(*words: str) -> int:
    """Run a command, and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    code = ended.value.code
    return code if isinstance(code, int) else 0


def imported(url: str, source: Path | str, *options: str) -> History:
    """Import a source as study `old`, check the database, and load the study."""
    code = command("import", str(source), "--name", "old", "--storage", url, *options)
    assert code == 0
    with closing(Store.open(url, create=False)) as store:
        with store.reading() as connection:
            assert violations(connection) == []
        return store.load("old")


def refused(capsys: pytest.CaptureFixture[str], source: Path | str, *options: str) -> str:
    """Import a source that does not fit, and return what is said."""
    capsys.readouterr()
    storage = "sqlite://"
    assert command("import", str(source), "--name", "old", "--storage", storage, *options) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


def values(history: History) -> list[float | None]:
    return [trial.value for trial in history.trials]


def states(history: History) -> list[str]:
    return [trial.state.value for trial in history.trials]
