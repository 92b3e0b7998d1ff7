"""One attempt in a process of its own, up to its first report or a little further."""

import math
import multiprocessing
import os
import resource
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hpsearch.domain import events as ev
from hpsearch.running import loading
from hpsearch.running.executors import worker_process
from hpsearch.running.executors.attempt.attempt_log import printing_into
from hpsearch.running.executors.attempt.execution import Ending
from hpsearch.running.executors.cluster import callers_folder
from hpsearch.running.executors.worker import ReplaceWorker, Worker
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.search.questions import first_value, other_value
from trials.contract import Problem, Ranks
from trials.descriptions.command import COMMAND, GRACE_S

STOP_S = 5.0  # seconds that the attempt may take to end when asked to, beyond those of a command
News = ev.Reported | Ending | ReplaceWorker
"""The news that an attempt is tried for: its first report, its end, or that of its process."""


@dataclass
class Tried:
    """The outcome of an attempt that was tried."""

    news: News | list[Problem] | None = None
    """The first news, or mistakes of its task; None if it ended, or took too long."""
    seconds: float = 0.0  # until then
    exit_code: int | None = None  # of the process that ended by itself, as `multiprocessing` has it
    imported: bool = False  # true if the task was built by then
    start_up_s: float = 0.0  # seconds from its order until it could train
    reports: dict[float, Mapping[str, float]] = field(default_factory=dict)  # by the resource
    trained_s: dict[float, float] = field(default_factory=dict)
    """The seconds from its start to each report, by the resource."""
    end: Ending | None = None  # its end, where it ended by itself
    ended_s: float = 0.0  # seconds until then
    cores: float = 0.0  # processors that it kept busy, on average
    queried: list[str] = field(default_factory=list)  # the parameters that it needed until then


def try_out(
    config: WorkerConfig,
    order: ev.Launch,
    device: str,
    memory_fraction: float,
    limit_s: float,
    *,
    has_ranks: bool = False,
    train_on_s: float = 0.0,
    is_for_as_long: bool = False,
    is_enough: Callable[[ev.Reported], bool] = lambda report: False,
    others: Collection[str] = (),
    before: Mapping[str, Any] | None = None,
) -> Tried:
    """Begin an attempt in a new process, and end it after its first report or `limit_s` seconds.
    The folder of `config` takes the log and the checkpoints.

    Args:
        has_ranks: The task finds a group of processes, of which this one is the only one.
        train_on_s: Seconds in which it trains on after its first report.
        is_for_as_long: It trains on for the time that its first report took, too.
        is_enough: Whether it ends at a report all the same.
        others: The parameters that it queries which get another value than the first one.
        before: The parameters of another trial, which the same process trains first, up to its
            first report.
    """
    if train_on_s:
        order = replace(order, until=math.inf)
    first = None if before is None else replace(order, trial=order.trial + 1, params=before)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    trial = context.Process(
        target=_serve,
        args=(theirs, config, order, first, device, memory_fraction, has_ranks, others),
    )
    tried = Tried()
    used_before_s = _processor_seconds()
    began = time.monotonic()
    give_up = began + limit_s

    def note(news: News | list[Problem] | None) -> None:
        if tried.news is None:
            tried.news = news
            tried.seconds = time.monotonic() - began

    with callers_folder.left_out(spawns=True):
        trial.start()
    theirs.close()
    try:
        while ours.poll(max(0.0, give_up - time.monotonic())):
            news = ours.recv()
            tried.imported = True
            match news:
                case ev.Began():
                    tried.start_up_s = news.start_up_s or tried.start_up_s
                case ev.Queried() if tried.news is None:
                    tried.queried.append(news.name)
                case ev.Reported():
                    tried.reports[news.resource] = news.metrics
                    passed_s = time.monotonic() - began
                    if tried.news is None:
                        give_up = began + passed_s + train_on_s
                        give_up += passed_s if is_for_as_long else 0.0
                    tried.trained_s[news.resource] = (
                        passed_s if news.elapsed is None else news.elapsed
                    )
                    note(news)
                    if not train_on_s or is_enough(news):
                        return tried
                case None | ev.Queried():
                    pass
                case _:
                    note(news)
                    tried.end = None if isinstance(news, list) else news
                    tried.ended_s = time.monotonic() - began
                    return tried
        note(None)
    except EOFError:
        trial.join()
        note(None)
        if tried.news is None:
            tried.exit_code = trial.exitcode
    finally:
        ours.close()
        try:
            trial.join(STOP_S + (GRACE_S if config.task["kind"] == COMMAND.kind else 0.0))
        finally:  # also after a second interrupt
            trial.kill()
            trial.join()
            used_s = _processor_seconds() - used_before_s
            tried.cores = used_s / (time.monotonic() - began)
    return tried


def _processor_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


class _Alone:
    """No other process (a `worker.Team`)."""

    def begin(self, order: ev.Launch, data: Any) -> Ranks:
        from trials.devices.ranks import ConnectedRanks, Meeting, places, serve

        here = "127.0.0.1"
        store = serve(here)
        return ConnectedRanks(places([here])[0], Meeting(here, store.port), store)

    def verdict(self, ending: Ending) -> tuple[Ending, str | None]:
        return ending, None


def _serve(
    pipe: Connection,
    config: WorkerConfig,
    order: ev.Launch,
    before: ev.Launch | None,
    device: str,
    memory_fraction: float,
    has_ranks: bool,
    others: Collection[str],
) -> None:
    worker_process.let_children_die_with_us()
    workers: list[Worker] = []

    def end_with_parent() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()
        if not workers:
            os._exit(0)
        workers[0].stop(ev.Stop(order.trial, order.attempt))

    threading.Thread(target=end_with_parent, daemon=True).start()
    with printing_into(2):
        directions = ["maximize" if goal.maximize else "minimize" for goal in config.goals]
        problems = loading.inspect(config.task, Path(config.base))
        problems = problems or loading.contradictions(config.task, Path(config.base), directions)
    if problems:
        pipe.send(problems)
        os._exit(0)
    pipe.send(None)
    data = config.load_task().prepare(config.params(order)) if config.prepares else None
    team = _Alone() if has_ranks else None
    worker = Worker(
        config, lambda given: given, device, memory_fraction, prints_into_logs=True, team=team
    )
    if before is not None:
        worker.launch(before, data)
        _follow(worker, before, others, None)
    worker.launch(order, data)
    workers.append(worker)
    _follow(worker, order, others, pipe)
    os._exit(0)


def _follow(
    worker: Worker, order: ev.Launch, others: Collection[str], pipe: Connection | None
) -> None:
    """Pass the events of an attempt on; without a pipe, end it after its first report."""
    while True:
        for event in worker.poll(1.0):
            if isinstance(event, ev.Queried):
                value_of = other_value if event.name in others else first_value
                given = {event.name: value_of(event.distribution)}
                worker.advance(ev.Advance(order.trial, order.attempt, order.until, given))
            if isinstance(event, ev.Reported) and pipe is None:
                worker.stop(ev.Stop(order.trial, order.attempt))
            if pipe is not None and isinstance(event, News | ev.Began | ev.Queried):
                with suppress(OSError):  # nobody waits for it any more
                    pipe.send(event)
            if isinstance(event, Ending | ReplaceWorker):
                return
