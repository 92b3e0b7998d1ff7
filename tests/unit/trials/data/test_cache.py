"""Prepared data on the disk: found again, told apart, mended, and shared by processes."""

import csv
import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trials import tasks
from trials.checkpoints.disk.whole_folders import MANIFEST
from trials.data import cache
from trials.data.cache import CacheEntry
from trials.settings import Settings
from trials.tasks.datasets import prepared
from trials.tasks.images.image_task import ImageDataSet
from trials.tasks.sequences.language import LanguageDataSet
from trials.tasks.sequences.tokens import TokenDataSet
from trials.tasks.tabular.table_task import TabularDataSet
from trials.tasks.text.text_task import TextDataSet


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was prepared without the cache."""
    done: list[Any] = []
    prepare = TextDataSet.prepare
    monkeypatch.setattr(
        TextDataSet, "prepare", lambda *what: [done.append(what), prepare(*what)][1]
    )
    return done


def entry() -> CacheEntry:
    return CacheEntry({"numbers": np.arange(5)}, {"notes.txt": b"x"}, {"count": 5})


def same(one: Any, other: Any) -> bool:
    return pickle.dumps(prepared.entry_of(one)) == pickle.dumps(prepared.entry_of(other))


def test_texts_are_tokenised_once_and_come_back_the_same(lab, root, builds):
    first, second = lab.task().prepare({}), lab.task().prepare({})
    assert len(builds) == 1
    fresh = TextDataSet(lab.task().spec).prepare(Settings())
    assert same(first, fresh)
    assert same(second, fresh)
    assert not second.train.tokens.flags.writeable
    assert isinstance(second.train.tokens.base, np.memmap)


def test_whatever_the_tokens_depend_on_makes_other_data(lab, root):
    def name(max_length: int = 128, **changes: Any) -> str | None:
        task = lab.task(**changes)
        return task.name_of_data(task.SETTINGS.parse({"max_length": max_length}))

    names = [
        name(),
        name(64),
        name(split_seed=1),
        name(validation=0.5),
        name(model={"scratch": {"vocabulary": 90}}),
    ]
    with (lab.folder / "train.csv").open("a") as file:
        file.write("why this fee,fee\n")
    names.append(name())
    assert len(set(names)) == 6
    assert name(model={"scratch": {"layers": 3, "vocabulary": 120}}) == names[-1], (
        "layers leave the tokens alone"
    )


def test_a_file_that_is_not_there_has_no_fingerprint(lab):
    task = lab.task(train="other.csv")
    assert task.name_of_data(task.SETTINGS()) is None


SCRATCH = {"scratch": {"layers": 1, "width": 16, "heads": 2, "vocabulary": 280}}
OTHERS = {
    "language_modeling": (LanguageDataSet, {"train": "train.csv", "model": SCRATCH}),
    "token_classification": (TokenDataSet, {"train": "train.conll", "model": SCRATCH}),
    "tabular": (
        TabularDataSet,
        {"train": "train.csv", "target": "topic", "categorical": ["words"], "numeric": ["size"]},
    ),
    "image_classification": (ImageDataSet, {"train": "train.npz"}),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_every_task_prepares_its_data_once(kind, lab, root, monkeypatch):
    rows = [(f"one two {n}", f"{n % 4}", n % 5, ("a", "b")[n % 2]) for n in range(40)]
    with (lab.folder / "train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "words", "size", "topic"), *rows])
    (lab.folder / "train.conll").write_text("".join(f"word{n}\tB-X\nout\tO\n\n" for n in range(40)))
    np.savez(
        lab.folder / "train.npz",
        images=np.arange(640, dtype=np.uint8).reshape(40, 4, 4),
        labels=["a", "b"] * 20,
    )
    module, part = OTHERS[kind]
    task = tasks.load({"kind": kind, "validation": 0.25, **part}, lab.folder)
    first = task.prepare({})

    def never(*_: Any) -> None:
        raise AssertionError("prepared again")

    monkeypatch.setattr(module, "prepare", never)
    second = task.prepare({})
    assert type(second) is type(first)
    assert same(first, second)
    with pytest.raises(AssertionError):
        tasks.load({"kind": kind, "validation": 0.5, **part}, lab.folder).prepare({})


def test_a_file_that_changes_in_a_folder_of_images_makes_other_data(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.png").write_bytes(b"one")

    def name() -> str | None:
        return prepared.fingerprint("image", (tmp_path, 0.5), (), None)

    before = name()
    assert before == name()
    (tmp_path / "cat" / "a.png").write_bytes(b"two")
    assert before != name()


@pytest.mark.parametrize("file", ["train.tokens.npy", "tokenizer.json", "manifest.json"])
def test_a_damaged_entry_is_made_anew(lab, root, builds, file, caplog):
    before = lab.task().prepare({})
    (place,) = root.iterdir()
    (place / file).write_bytes((place / file).read_bytes()[:-3])
    assert same(lab.task().prepare({}), TextDataSet(lab.task().spec).prepare(Settings()))
    assert "made again" in caplog.text
    lab.task().prepare({})
    assert len(builds) == 3, "two preparations, and the one of this test"
    assert [path.name for path in root.iterdir()] == [place.name]
    assert before.labels == ("card", "fee", "rate")


def test_an_entry_cut_short_by_a_dying_process_is_not_there(tmp_path):
    def dies() -> CacheEntry:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.cached("name", dies, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_several_who_prepare_the_same_at_once_all_get_it(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.cached("name", entry, tmp_path), range(24)))
    assert all(
        one.arrays["numbers"].tolist() == [0, 1, 2, 3, 4] and one.facts == {"count": 5}
        for one in found
    )
    assert [path.name for path in tmp_path.iterdir()] == ["name"]


def slow_entry() -> CacheEntry:
    return CacheEntry(
        {f"numbers{n}": np.arange(5) for n in range(20)}, {"notes.txt": b"x"}, {"count": 5}
    )


def take(root: str) -> int:
    found = cache.cached("name", slow_entry, Path(root))
    return int(sum(array.sum() for array in found.arrays.values()))


def test_several_processes_that_make_the_same_entry_at_once_all_get_it(tmp_path):
    (tmp_path / "name").mkdir()
    (tmp_path / "name" / MANIFEST).write_text(
        "damaged, so that all of them want to put another in its place"
    )
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(take, [str(tmp_path)] * 16))
    assert found == [200] * 16
    assert [path.name for path in tmp_path.iterdir()] == ["name"]


def test_a_folder_that_cannot_be_written_costs_time_and_no_trial(tmp_path, caplog):
    (tmp_path / "file").write_text("no folder")
    assert cache.cached("name", entry, tmp_path / "file").files == {"notes.txt": b"x"}
    assert "cannot be kept" in caplog.text
    assert cache.VARIABLE in caplog.text


def test_the_folder_is_the_variables_or_the_users():
    assert cache.folder({cache.VARIABLE: "/somewhere"}) == Path("/somewhere")
    assert cache.folder({}) == Path.home() / ".cache" / "hpsearch"


def big() -> CacheEntry:
    return CacheEntry({"numbers": np.zeros(1000)}, {}, {})


def in_turn(root: Path, *names: str) -> int:
    """Write entries that no process uses, each a minute after the one before; the size of one."""
    for number, name in enumerate(names):
        cache._write(big(), root / name)
        os.utime(root / name / MANIFEST, (1000.0 + 60 * number, 1000.0 + 60 * number))
    return sum(file.stat().st_size for file in (root / names[0]).iterdir())


def test_what_was_read_longest_ago_goes_first(tmp_path, monkeypatch):
    size = in_turn(tmp_path, "a", "b", "c")
    cache.cached("a", big, tmp_path)
    monkeypatch.setattr(cache, "MOST_BYTES", 3 * size)
    cache.cached("d", big, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "c", "d"}


def test_what_fits_stays(tmp_path):
    size = in_turn(tmp_path, "a", "b", "c")
    cache.shrink(tmp_path, 3 * size)
    assert len(list(tmp_path.iterdir())) == 3
    cache.shrink(tmp_path, 3 * size - 1)
    assert {path.name for path in tmp_path.iterdir()} == {"b", "c"}


def test_what_was_read_within_a_day_is_not_removed(tmp_path):
    in_turn(tmp_path, "a", "b")
    cache.cached("a", big, tmp_path)
    cache.shrink(tmp_path, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_is_removed_stays_with_the_process_that_has_read_it(tmp_path):
    found = cache.cached("a", lambda: CacheEntry({"numbers": np.arange(9)}, {}, {}), tmp_path)
    os.utime(tmp_path / "a" / MANIFEST, (1000.0, 1000.0))
    cache.shrink(tmp_path, 0)
    assert list(tmp_path.iterdir()) == []
    assert found.arrays["numbers"].sum() == 36


def test_what_a_killed_process_left_half_made_goes_and_other_files_stay(tmp_path):
    (tmp_path / ".writing-abandoned").mkdir()
    (tmp_path / ".writing-abandoned" / "train.npy").write_bytes(b"half")
    (tmp_path / "something-else").mkdir()
    cache.cached("a", big, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "something-else"}
