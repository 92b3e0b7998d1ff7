"""Prepared data on the disk: found again, told apart, mended, and shared by processes."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trials import cache
from trials.cache import Entry
from trials.tasks import text_cache, text_data


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was prepared without the cache."""
    done: list[Any] = []
    prepare = text_data.prepare
    monkeypatch.setattr(text_data, "prepare", lambda *what: [done.append(what), prepare(*what)][1])
    return done


def entry() -> Entry:
    return Entry({"numbers": np.arange(5)}, {"notes.txt": b"x"}, {"count": 5})


def same(one: Any, other: Any) -> bool:
    return pickle.dumps(text_cache.packed(one)) == pickle.dumps(text_cache.packed(other))


def test_texts_are_tokenised_once_and_come_back_the_same(lab: Any, root: Path, builds: list[Any]) -> None:
    first, second = lab.task().prepare({}), lab.task().prepare({})
    assert len(builds) == 1
    fresh = text_data.prepare(lab.task().spec, lab.task().spec.model, 128)
    assert same(first, fresh)
    assert same(second, fresh)
    assert not second.train.tokens.flags.writeable
    assert isinstance(second.train.tokens.base, np.memmap)


def test_whatever_the_tokens_depend_on_makes_other_data(lab: Any, root: Path) -> None:
    def name(max_length: int = 128, **changes: Any) -> str | None:
        spec = lab.task(**changes).spec
        return text_cache.fingerprint(spec, spec.model, max_length)

    names = [name(), name(64), name(split_seed=1), name(validation=0.5), name(model={"scratch": {"vocabulary": 90}})]
    with (lab.folder / "train.csv").open("a") as file:
        file.write("why this fee,fee\n")
    names.append(name())
    assert len(set(names)) == 6
    assert name(model={"scratch": {"layers": 3, "vocabulary": 120}}) == names[-1], "layers leave the tokens alone"


def test_a_file_that_is_not_there_has_no_fingerprint(lab: Any) -> None:
    spec = lab.task(train="other.csv").spec
    assert text_cache.fingerprint(spec, spec.model, 128) is None


@pytest.mark.parametrize("file", ["train.tokens.npy", "tokenizer.json", "manifest.json"])
def test_a_damaged_entry_is_made_anew(
    lab: Any, root: Path, builds: list[Any], file: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = lab.task().prepare({})
    (place,) = root.iterdir()
    (place / file).write_bytes((place / file).read_bytes()[:-3])
    assert same(lab.task().prepare({}), text_data.prepare(lab.task().spec, lab.task().spec.model, 128))
    assert "made anew" in caplog.text
    lab.task().prepare({})
    assert len(builds) == 3, "two preparations, and the one of this test"
    assert [path.name for path in root.iterdir()] == [place.name]
    assert before.labels == ("card", "fee", "rate")


def test_an_entry_cut_short_by_a_dying_process_is_not_there(tmp_path: Path) -> None:
    def dies() -> Entry:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.kept("name", dies, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_several_who_prepare_the_same_at_once_all_get_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.kept("name", entry, tmp_path), range(24)))
    assert all(one.arrays["numbers"].tolist() == [0, 1, 2, 3, 4] and one.facts == {"count": 5} for one in found)
    assert [path.name for path in tmp_path.iterdir()] == ["name"]


def test_a_folder_that_cannot_be_written_costs_time_and_no_trial(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    assert cache.kept("name", entry, tmp_path / "file").files == {"notes.txt": b"x"}
    assert "cannot be kept" in caplog.text
    assert cache.VARIABLE in caplog.text


def test_the_folder_is_the_variables_or_the_users() -> None:
    assert cache.folder({cache.VARIABLE: "/somewhere"}) == Path("/somewhere")
    assert cache.folder({}) == Path.home() / ".cache" / "hpsearch"
