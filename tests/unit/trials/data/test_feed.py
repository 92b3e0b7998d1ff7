"""Batches gathered ahead: the same ones, in time, and an end to whatever goes wrong."""

import gc
import threading

import numpy as np
import pytest
import torch

from support.patience import PATIENCE_S
from trials import tasks
from trials.contract import Setup
from trials.data.feed import AHEAD, THREADS, Feed, threads_for
from trials.data.order import BatchOrder
from trials.data.residence import Residence
from trials.data.samples import LABELS, Column, Samples
from trials.devices.processes import Group
from trials.running.report_grid import budget_from
from trials.settings import Settings

CPU = torch.device("cpu")
COUNT = 50


class Numbered:
    """Samples that are their own numbers; it knows what was gathered, and in which thread."""

    lengths = np.arange(COUNT) % 7 + 1

    def __init__(self) -> None:
        residence = Residence(CPU, resident=False)
        columns = [
            Column(residence, "x", np.arange(COUNT)),
            Column(residence, LABELS, np.arange(COUNT)),
        ]
        self.samples = Samples(residence, columns)
        self.ahead: list[list[int]] = []
        self.open = threading.Event()
        self.open.set()
        self.failure: BaseException | None = None
        self._gather, self.samples.gather = self.samples.gather, self.gather

    def gather(self, rows):
        if threading.current_thread() is threading.main_thread():
            return self._gather(rows)
        self.ahead.append(rows.tolist())
        self.open.wait()
        if self.failure is not None:
            raise self.failure
        return self._gather(rows)

    def batch(self, rows):
        return self.samples.batch(rows)


@pytest.fixture
def workload():
    workload = Numbered()
    yield workload
    workload.open.set()


@pytest.fixture
def feed_of(workload):
    """Makes feeds that gather batches of eight, and closes them."""
    feeds = []

    def make(threads, group=None):
        order = BatchOrder(workload.lengths, Settings(batch_size=8), seed=1)
        feeds.append(Feed(workload, order, group or Group(), threads))
        return feeds[-1], order

    yield make
    workload.open.set()
    for feed in feeds:
        feed.close()


def fed(feed, order, size, steps, begin=0):
    """What a run is fed in so many steps, by micro-batch."""
    found = []
    for step in range(begin, begin + steps):
        parts, _ = feed.parts(order.rows(step), 1.0, size, step)
        found += [feed.batch(part).labels.tolist() for part in parts]
    return found


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_feed_a_run_what_it_would_have_gathered_itself(workload, feed_of, threads):
    expected = fed(*feed_of(0), size=3, steps=20)  # seven steps make an epoch
    assert workload.ahead == []
    found = fed(*feed_of(threads), size=3, steps=20)
    assert found == expected
    assert {tuple(part) for part in found} <= {tuple(part) for part in workload.ahead}, (
        "all of it by threads"
    )


def test_never_more_than_a_few_batches_are_ahead(workload, feed_of):
    found = fed(*feed_of(2), size=3, steps=5)
    assert len(found) <= len(workload.ahead) <= len(found) + 2 * AHEAD


def test_a_smaller_micro_batch_and_a_step_that_is_done_again_are_fed_right(feed_of):
    (feed, order), (plain, same) = feed_of(2), feed_of(0)
    for size, begin, steps in ((8, 0, 3), (4, 2, 1), (4, 2, 4), (2, 6, 3), (8, 1, 2)):
        assert fed(feed, order, size, steps, begin) == fed(plain, same, size, steps, begin)


def test_rows_out_of_turn_are_gathered_at_once_and_leave_the_line_as_it_was(workload, feed_of):
    feed, order = feed_of(1)
    longest = order.longest()
    feed.parts(longest, 1.0, 8, 0)
    assert feed.batch(longest).labels.tolist() == longest.tolist()
    found = fed(feed, order, 8, 2)
    assert found == [order.rows(0).tolist(), order.rows(1).tolist()]
    assert workload.ahead[:2] == found


def test_each_process_is_fed_its_share(feed_of):
    shares = [fed(*feed_of(1, Group(rank, 2)), size=3, steps=7) for rank in range(2)]
    assert sorted(row for share in shares for part in share for row in part) == list(range(COUNT))


def test_what_a_thread_raises_is_raised_where_the_batch_is_taken(workload, feed_of):
    workload.failure = OSError("the disk is gone")
    with pytest.raises(OSError, match="the disk is gone"):
        fed(*feed_of(1), size=8, steps=1)


def test_threads_end_with_the_feed_that_nobody_closed(workload):
    order = BatchOrder(workload.lengths, Settings(batch_size=8), seed=1)
    before = set(threading.enumerate())
    feed = Feed(workload, order, Group(), 2)
    fed(feed, order, size=8, steps=2)
    threads = set(threading.enumerate()) - before
    assert 1 <= len(threads) <= 2
    del feed
    gc.collect()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize(
    ("asked", "device", "resident", "threads"),
    [
        ("auto", "cuda", True, 0),
        (3, "cuda", True, 0),
        ("auto", "cuda", False, THREADS),
        (3, "cuda", False, 3),
        (0, "cuda", False, 0),
        ("auto", "cpu", True, 0),
        (3, "cpu", True, 3),
    ],
)
def test_threads_are_for_samples_that_are_not_on_the_gpu(asked, device, resident, threads):
    assert threads_for(asked, Residence(torch.device(device), resident)) == threads


def test_a_fed_run_is_the_run_without_threads(lab, without_timings):
    params = {"batch_size": 16, "micro_batch": 5, "dropout": 0.3, "learning_rate": 0.01}
    task = lab.task()
    data = task.prepare(params)
    runs = [
        task.start(lab.setup(f"{n}", {"epochs": 3}, data_workers=n, **params), data) for n in (0, 2)
    ]
    alone, threaded = ([report for report in run if report is not None] for run in runs)
    assert without_timings(threaded) == without_timings(alone)
    assert all(run.close() for run in runs)


def test_images_are_changed_by_the_same_draws_in_a_fed_run(tmp_path, without_timings):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "train.npz", images=images, labels=np.arange(60) % 3)
    task = tasks.load(
        {"kind": "image_classification", "train": "train.npz", "validation": 0.2}, tmp_path
    )
    data, found = task.prepare({}), []
    for threads in (0, 2):
        params = {
            "flip": True,
            "shift": 2,
            "batch_size": 16,
            "width": 4,
            "depth": 1,
            "data_workers": threads,
        }
        run = task.start(
            Setup(params, 3, budget_from({"epochs": 2}), tmp_path / f"{threads}"), data
        )
        found.append(without_timings([report for report in run if report is not None]))
        assert run.close()
    assert found[0] == found[1]
