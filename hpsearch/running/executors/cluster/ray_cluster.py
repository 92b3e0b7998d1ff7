"""The Ray cluster that this process is part of, and the nodes that its head knows.

Ray itself waits for a head that is gone: calls hang, and after a while the process ends without a
message. So a thread asks the head, and its silence is measured. A driver that has heard nothing for
too long ends in order, and its study can be resumed. Trials continue meanwhile: workers and the
driver do not need the head to talk to each other.
"""

import atexit
import json
import logging
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hpsearch.errors import Unreachable

# What newer versions of Ray do; silences a warning.
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Ray starts workers with a niceness of 15: beside other busy processes of the machine, what trains
# would get a few percent of a core, and its GPU would wait.
os.environ.setdefault("RAY_worker_niceness", "0")

import ray
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, placement_group_table

from hpsearch.errors import ClusterLost, HpsearchError, Unusable
from hpsearch.running.executors.cluster import callers_folder, ray_private
from hpsearch.running.executors.cluster.address import refuse_unreachable
from hpsearch.running.executors.cluster.ray_thread import RayThread
from hpsearch.study_file.models import Resources
from trials.foreign import line_of, text_of
from trials.running import interruption, watcher

ASK_S = 1.0  # how often the head is asked which nodes there are
SILENT_S = 5 * ASK_S
"""The silence of the head after which it is asked nothing that would wait, and a warning logged."""
START_S = 120.0  # how long joining a cluster, or starting one, may take
GOODBYE_S = 10.0  # how long leaving it may take
SLOW_START = "timed out during startup"  # in Ray's error where this machine has too much else to do
OTHER_VERSION = "Version mismatch"  # in Ray's error
TOO_LONG = "AF_UNIX path length"  # in Ray's error where a socket's path is longer than it may be
SAVED = "everything up to the last reports is saved"
_SECRETS = ("HPSEARCH_STORAGE", "PGPASSWORD", "HPSEARCH_DASHBOARD_TOKEN", "HPSEARCH_NOTIFY")
"""Environment variables that may give access to the database, the dashboard or a webhook."""
JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""The environment variable with what Ray gives all workers of a job: also its environment."""

log = logging.getLogger("hpsearch")

Answer = TypeVar("Answer")


@contextmanager
def cluster(address: str | None, resources: Resources) -> Iterator[RayThread]:
    """Join the cluster at an address, or start a local one without one, and leave it at the end.
    Yields the thread that is part of it. Raises Unreachable if nothing answers."""
    logging.getLogger("ray").setLevel(logging.ERROR)  # it would warn that it handles no signals
    thread = RayThread()
    mark = None
    try:
        if address is None:
            mark = watcher.watch("HPSEARCH_RAY", group=False) if hasattr(os, "pidfd_open") else None
            _begin(thread, partial(_make_local, resources, mark))
        else:
            refuse_unreachable(address)
            _begin(thread, partial(_join, address))
        interruption.take_back()
        # Ray sets this itself where it asks for a token.
        if os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
            what = "this Ray does not ask for a token: anyone who can reach its ports can run code"
            log.warning("%s as you (docs/security.md)", what)
        yield thread
    finally:
        _leave(thread, mark)


def _begin(thread: RayThread, start: Callable[[], None]) -> None:
    try:
        thread.call(start, START_S)
    except ClusterLost as error:
        what = f"Ray has neither started nor failed within {START_S:.0f} s: its head may have died"
        raise ClusterLost(what, "nothing has begun; try again") from error


def _make_local(resources: Resources, mark: str | None) -> None:
    cpus = os.cpu_count() or 1
    if isinstance(resources.workers, int):
        # An explicit number of workers is followed even where there are not as many cores.
        cpus = max(cpus, math.ceil(resources.workers * resources.processes * resources.cpu))
    start = partial(ray.init, address="local", num_cpus=cpus, include_dashboard=False, **_quietly())
    try:
        with _without_secrets(), _marked(mark), ray_private.apart(), callers_folder.left_out():
            try:
                start()
            except Exception as error:
                if SLOW_START not in text_of(error):
                    raise
                # Ray waits for half a minute, and its files are in memory now.
                _end_marked(mark, limit_s=0.0)
                start()
    except Exception as error:  # each part of Ray has errors of its own
        raise _failed_start(error) from error


def _failed_start(error: Exception) -> HpsearchError:
    """The error that says why Ray has not started on this machine, and if it may another time."""
    what = f"Ray does not start here: {line_of(error)}"
    folder = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir(), "ray")
    if TOO_LONG in text_of(error):
        hint = f"{folder} is too long a path for sockets: set TMPDIR to a short one, as /tmp is"
        return Unusable(what, hint)
    if isinstance(error, PermissionError | NotADirectoryError | FileNotFoundError):
        hint = "HOME and TMPDIR must be folders that you may write to"
        return Unusable(what, hint)
    return Unreachable(what, f"try again; its logs are in {folder}/session_latest/logs")


@contextmanager
def _marked(mark: str | None) -> Iterator[None]:
    """Let all that starts meanwhile, and what that starts, be known as this Ray's."""
    if mark is None:
        yield
        return
    name, _, value = mark.partition("=")
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def _join(address: str) -> None:
    try:
        with _without_secrets():
            ray.init(address=address, **_quietly())
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        if OTHER_VERSION in text_of(error):
            what = f"the Ray cluster at {address} is of another version: {line_of(error)}"
            raise Unusable(what, "use the same Ray and Python on both sides") from error
        hint = "check --address; where the cluster asks for a token, set RAY_AUTH_MODE=token"
        raise Unreachable(f"no Ray cluster answers at {address}: {line_of(error)}", hint) from error


def _quietly() -> dict[str, Any]:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    return {**quiet, "namespace": "hpsearch", "job_config": ray_private.WithoutFolders()}


@contextmanager
def _without_secrets() -> Iterator[None]:
    """Keep access to the database from what starts meanwhile, also in a job of Ray's."""
    secrets = (*_SECRETS, JOB_CONFIG)
    kept = {name: os.environ.pop(name) for name in secrets if name in os.environ}
    if JOB_CONFIG in kept:
        config = json.loads(kept[JOB_CONFIG])
        for name in _SECRETS:
            config["runtime_env"].get("env_vars", {}).pop(name, None)
        os.environ[JOB_CONFIG] = json.dumps(config)
    try:
        with ray_private.unnamed():
            yield
    finally:
        os.environ.update(kept)


def _leave(thread: RayThread, mark: str | None) -> None:
    try:
        # A start that was given up is not waited for; it is left once it has come back.
        thread.call(ray.shutdown, 0.0 if thread.is_stuck else GOODBYE_S)
    except ClusterLost:
        atexit.unregister(ray.shutdown)  # it would hang there, too
    finally:
        thread.close()
        _end_marked(mark, GOODBYE_S)


def _end_marked(mark: str | None, limit_s: float) -> None:
    if mark is not None:
        watcher.end_left(partial(watcher.marked, mark, os.getsid(0)), limit_s=limit_s)


@dataclass(frozen=True, slots=True)
class Node:
    """A node as the head knows it."""

    resources: Mapping[str, float]
    free: Mapping[str, float]  # the part of its resources that nobody uses
    alive: bool
    leaving: bool  # true if it is being drained
    address: str


class HeadNode:
    """The head of the cluster, silent for at most `patience_s`, and the nodes that it knows."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._own = ray.get_runtime_context().get_node_id()
        self.awaited: dict[str, PlacementGroup] = {}
        """Placement groups of which `placed` is to say if they have their place, by name."""
        self.placed: frozenset[str] = frozenset()
        """The names of the placement groups that have their place on a node."""
        self.avoided: dict[str, float] = {}
        """Until when each node is set aside, by its id and the monotonic clock."""
        self.nodes = _ask()
        self._answered = self._checked = time.monotonic()
        self._has_warned = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="head", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._closed.is_set():
            try:
                # In this order: what a group with a place takes is not counted as free.
                groups = list(self.awaited.items())
                placed = frozenset(name for name, group in groups if _is_placed(group))
                nodes = _ask()
            except RayError as error:
                log.debug("the head of the cluster does not answer: %s", error)
            else:
                self.placed, self.nodes = placed, nodes
                self._answered = time.monotonic()
            self._closed.wait(ASK_S)

    def check(self) -> None:
        """Raise ClusterLost if the head was silent for too long, or its node here has died."""
        now = time.monotonic()
        silent_s = self._silent_s(now)
        if silent_s > self._patience_s:
            what = f"the head of the Ray cluster has not answered for {silent_s:.0f} s"
            hint = f"{SAVED}; start the cluster, and continue the study"
            raise ClusterLost(f"{what} (resources.worker_timeout)", hint)
        own = self.nodes.get(self._own)
        if own is None or not own.alive:
            what = "the cluster has given up the Ray node of this machine"
            raise ClusterLost(what, f"{SAVED}; see `ray status`, and continue the study")
        self._warn(is_silent=silent_s > SILENT_S)

    def _silent_s(self, now: float) -> float:
        """The seconds of the head's silence. If this process was stopped, or waited for the
        database, the head gets half of its time to answer from now on."""
        away_s = now - self._checked
        self._checked = now
        if away_s > self._patience_s / 2:
            self._answered = max(self._answered, now - self._patience_s / 2)
        return now - self._answered

    def _warn(self, *, is_silent: bool) -> None:
        if is_silent == self._has_warned:
            return
        self._has_warned = is_silent
        state = "does not answer; trials continue meanwhile" if is_silent else "answers again"
        log.warning("the head of the Ray cluster %s", state)

    @property
    def answers(self) -> bool:
        """True if the head has answered lately."""
        return time.monotonic() - self._answered < SILENT_S

    def stays(self, node: str) -> bool:
        """True if work can go to a node."""
        found = self.nodes.get(node)
        return found is not None and found.alive and not found.leaving

    @property
    def aside(self) -> set[str]:
        """The nodes that are set aside now; none if no other stays."""
        now = time.monotonic()
        aside = {node for node, until in self.avoided.items() if until > now and self.stays(node)}
        others = any(self.stays(node) and node not in aside for node in self.nodes)
        return aside if others else set()

    def offers(self, node: str) -> bool:
        """True if new work can go to a node."""
        return self.stays(node) and node not in self.aside

    @property
    def leaving(self) -> set[str]:
        """The nodes that are being drained."""
        return {name for name, node in self.nodes.items() if node.alive and node.leaving}

    @property
    def staying(self) -> list[Node]:
        """The nodes that new work can go to."""
        return [node for name, node in self.nodes.items() if self.offers(name)]

    def await_node(self, unless: Callable[[], bool]) -> None:
        """Wait until a node offers CPUs, as a head may be alone at first, or else `unless`."""
        if self._offers_cpus() or unless():
            return
        log.warning("waiting for the first node of the cluster that runs trials")
        while not (self._offers_cpus() or unless()):
            self.check()
            self._closed.wait(ASK_S)

    def _offers_cpus(self) -> bool:
        return any(node.resources.get("CPU") for node in self.staying)

    def close(self) -> None:
        self._closed.set()
        self._thread.join(ASK_S)


def _ask() -> dict[str, Node]:
    draining, free = ray_private.draining(), ray_private.free_by_node()
    nodes = {}
    for row in ray.nodes():
        name = row["NodeID"]
        is_leaving = name in draining
        address = row["NodeManagerAddress"]
        nodes[name] = Node(row["Resources"], free.get(name, {}), row["Alive"], is_leaving, address)
    return nodes


def ask_head(
    question: Callable[[], Answer], late: Callable[[Answer], object] = lambda _: None
) -> Answer | None:
    """Ask the head something for which Ray would wait a minute, or for ever. Returns None if there
    is no answer in `SILENT_S`; one that comes after all goes to `late`, in a thread. Raises errors
    that are not Ray's."""
    future: Future[Answer] = Future()

    def ask() -> None:
        try:
            future.set_result(question())
        except Exception as error:  # noqa: BLE001  # it is raised below
            future.set_exception(error)

    def take(answered: Future[Answer]) -> None:
        if answered.exception() is None:
            late(answered.result())

    threading.Thread(target=ask, name="asking", daemon=True).start()
    try:
        return future.result(SILENT_S)
    except (TimeoutError, RayError) as error:
        log.debug("the head of the cluster does not answer: %s", error)
        future.add_done_callback(take)
        return None


def _is_placed(group: PlacementGroup) -> bool:
    return bool(placement_group_table(group).get("state") == "CREATED")
