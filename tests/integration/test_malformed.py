"""Whatever is malformed: its exit code, a message that names the place and the remedy, and nothing
is changed by it."""

import gc
import hashlib
from pathlib import Path

import pytest

from hpsearch.cli.main import main
from malformed import Case, commands, data_files, databases, good, past_runs, study_files

TABLES = {
    module.__name__.rpartition(".")[2]: module.CASES
    for module in (study_files, data_files, commands, databases, past_runs)
}
CASES = {f"{table}: {case.name}": case for table, cases in TABLES.items() for case in cases}


def contents(folder: Path) -> dict[str, str]:
    """What is in a folder: the hash of every file, the type of everything else."""
    found = {}
    for path in sorted(folder.rglob("*")):
        plain = path.is_file() and not path.is_symlink()
        found[str(path)] = (
            hashlib.sha256(path.read_bytes()).hexdigest() if plain else oct(path.lstat().st_mode)
        )
    return found


def exit_code_of(case: Case) -> object:
    with pytest.raises(SystemExit) as ended:
        main(case.command)
    return ended.value.code


@pytest.mark.cases(24)
@pytest.mark.parametrize("name", CASES)
def test_malformed_input_is_refused_with_its_place_and_remedy_and_nothing_is_changed(
    name, tmp_path, monkeypatch, capsys
):
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("HPSEARCH_STORAGE", f"sqlite:///{tmp_path}/study.db")
    monkeypatch.setattr("hpsearch.store.connecting.engine.wait_s", lambda: 0.1)
    for variable in ("FORCE_COLOR", "TTY_COMPATIBLE", "RAY_ADDRESS"):
        monkeypatch.delenv(variable, raising=False)
    good(tmp_path)
    case.make(tmp_path)
    before = contents(tmp_path)
    code = exit_code_of(case)
    said = capsys.readouterr()
    assert code == case.code, said.err
    assert said.out == ""
    assert case.place in said.err
    assert case.remedy in said.err
    assert "Traceback" not in said.err
    assert len(said.err) < 8_000, "nobody reads so much"
    if (tmp_path / "study.db-wal").exists():
        gc.collect()  # a cursor that an exception refers to keeps SQLite's files open
    assert contents(tmp_path) == before


def test_the_tables_are_large_and_every_case_has_a_name_of_its_own():
    assert len(CASES) == sum(map(len, TABLES.values())) >= 150
    assert all(case.place and case.remedy for case in CASES.values())
