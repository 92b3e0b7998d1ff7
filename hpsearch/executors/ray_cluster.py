"""The Ray cluster that this process is part of, and what its head says of the nodes.

A head that is gone is waited for by Ray itself: calls hang, and after a while the process is ended without a word. So
the head is asked in a thread of its own, its silence is measured, and a driver that has heard nothing for too long
ends in order, resumable. Trials train on meanwhile: workers and the driver need no head to talk to each other.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what newer Rays do; silences a warning
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray._private.state import state  # the one place that knows which nodes are being drained
from ray.exceptions import RayError

from hpsearch.errors import ClusterLost, ClusterUnreachable
from hpsearch.executors.address import refuse_unreachable
from hpsearch.spec import Resources

ASK_S = 1.0
"""How often the head is asked which nodes there are."""

WARN_S = 10.0
"""A silence of the head that is told."""

GOODBYE_S = 10.0
"""How long leaving the cluster may take."""

TOLD_TO_END = (1, 3, 4)
"""Ray's reasons for a node's death that are no accident: ended by SIGTERM, drained before a preemption or when idle."""

_SECRETS = ("HPSEARCH_STORAGE", "PGPASSWORD", "HPSEARCH_DASHBOARD_TOKEN")
"""Environment variables that may open the database, or pages of it."""

log = logging.getLogger("hpsearch")


@contextmanager
def cluster(address: str | None, resources: Resources) -> Iterator[None]:
    """Be part of the cluster at an address, or of a local one made for the while. Never the one for the other.

    Raises:
        ClusterUnreachable: Nothing answers at the address.
    """
    on_sigterm = signal.getsignal(signal.SIGTERM)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "namespace": "hpsearch"}
    # Ray would end a process that has missed the head for a minute; how long is too long is for `Head` to say.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", str(60 + math.ceil(2 * resources.worker_timeout_s)))
    if address is None:
        cpus = os.cpu_count() or 1
        if isinstance(resources.workers, int):  # an explicit number of workers is honoured on one's own machine
            cpus = max(cpus, math.ceil(resources.workers * resources.cpu))
        with _without_secrets():
            ray.init(address="local", num_cpus=cpus, include_dashboard=False, **quiet)
    else:
        refuse_unreachable(address)
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, RayError) as error:
            text = str(error).strip().splitlines()[0]
            hint = "check --address or RAY_ADDRESS; where the cluster asks for a token, set RAY_AUTH_MODE=token"
            raise ClusterUnreachable(f"no Ray cluster answers at {address}: {text}", hint) from error
    if os.environ.get("RAY_AUTH_MODE", "").lower() != "token":  # Ray sets it where it asks for one by itself
        log.warning("this Ray asks for no token: whoever reaches its ports may run code as you (docs/security.md)")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray puts one of its own there, which saves nothing
    try:
        yield
    finally:
        _leave()


@contextmanager
def _without_secrets() -> Iterator[None]:
    """Processes that are started meanwhile, and all that those start, inherit no way into the database."""
    kept = {name: os.environ.pop(name) for name in _SECRETS if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


def _leave() -> None:
    """Leave the cluster; not without an end where its head does not answer."""
    leaving = threading.Thread(target=ray.shutdown, name="leaving", daemon=True)
    leaving.start()
    leaving.join(GOODBYE_S)
    if leaving.is_alive():
        atexit.unregister(ray.shutdown)  # it would hang there, too


@dataclass(frozen=True, slots=True)
class Node:
    """A node as the head knows it."""

    resources: Mapping[str, float]
    alive: bool
    leaving: bool
    """Whether it is being drained."""
    told_to_end: bool
    """Whether its end was no accident."""


class Head:
    """What the cluster's head says of its nodes.

    Args:
        patience_s: The longest silence of the head that is borne.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._own = ray.get_runtime_context().get_node_id()
        self.nodes = _ask()
        self._answered = self._checked = time.monotonic()
        self._told = False
        self._closed = False
        self._due = threading.Event()
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._follow, name="head", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._closed:
            try:
                nodes = _ask()
            except RayError as error:
                log.debug("the head of the cluster does not answer: %s", error)
            else:
                with self._news:
                    self.nodes, self._answered = nodes, time.monotonic()
                    self._news.notify_all()
            self._due.wait(ASK_S)
            self._due.clear()

    def check(self) -> None:
        """See that there still is a cluster.

        Raises:
            ClusterLost: The head has been silent for too long, or this process's own node has died.
        """
        now = time.monotonic()
        away, self._checked = now - self._checked > self._patience_s / 2, now
        if away:  # we were stopped, or waited for the database
            self._answered = max(self._answered, now - self._patience_s / 2)
        silent = now - self._answered
        if silent > self._patience_s:
            what = f"the head of the Ray cluster has not answered for {silent:.0f} s (resources.worker_timeout)"
            raise ClusterLost(what, "all is saved as of the last reports; start the cluster, and resume")
        if not (own := self.nodes.get(self._own)) or not own.alive:
            what = "the cluster has given up the Ray node on this machine, through which the driver takes part in it"
            raise ClusterLost(what, "all is saved as of the last reports; see `ray status`, and resume")
        if self._told != (silent > WARN_S):
            self._told = silent > WARN_S
            told = "does not answer; trials train on meanwhile" if self._told else "answers again"
            log.warning("the head of the Ray cluster %s", told)

    def was_told_to_end(self, node: str) -> bool:
        """Whether a node that has just ended was told to; asked anew, for as long as that takes."""
        with self._news:
            self._due.set()
            self._news.wait_for(lambda: node not in self.nodes or not self.nodes[node].alive, 2 * ASK_S)
        return node in self.nodes and self.nodes[node].told_to_end

    @property
    def leaving(self) -> set[str]:
        """The nodes that are being drained."""
        return {name for name, node in self.nodes.items() if node.alive and node.leaving}

    @property
    def staying(self) -> list[Node]:
        """The nodes that work can go to."""
        return [node for node in self.nodes.values() if node.alive and not node.leaving]

    def close(self) -> None:
        """Ask no more."""
        self._closed = True
        self._due.set()
        self._thread.join(ASK_S)


def _ask() -> dict[str, Node]:
    """All nodes that the cluster has had, by their ids; blocks for as long as the head is silent."""
    draining = state.get_draining_nodes()
    return {
        node["NodeID"]: Node(
            node["Resources"], node["Alive"], node["NodeID"] in draining, node["DeathReason"] in TOLD_TO_END
        )
        for node in state.node_table()
    }
