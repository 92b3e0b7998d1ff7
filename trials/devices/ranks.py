"""The ranks of one trial of a study: their places, the words of rank 0, and their process group.

Whatever is decided about a trial is decided on rank 0, which tells the others. It does so in a
key-value store that it serves (torch's TCPStore) and not in a collective, so that its words do not
mix with the exchanges of the training, whatever its backend is.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from trials.contract import Pruned, TrialStopped
from trials.foreign import in_words

if TYPE_CHECKING:
    from torch._C._distributed_c10d import TCPStore

T = TypeVar("T")

BY_FIRST = "raised on rank 0"  # begins the text of an error that rank 0 told to the others

_CONNECT = timedelta(seconds=60)
_FOREVER = timedelta(days=30)
"""A rank waits for the words of rank 0; it ends with rank 0, or is killed."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a process among those of its trial."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    node: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """The address and port of the store of rank 0."""

    address: str
    port: int


def places(nodes: Sequence[str]) -> list[Place]:
    """The place of each process, by the name of its node. The first process is rank 0; the ranks of
    a node follow each other."""
    names = list(dict.fromkeys(nodes))
    counts = Counter(nodes)
    seen: Counter[str] = Counter()
    found = []
    for node in nodes:
        number = names.index(node)
        before = sum(counts[name] for name in names[:number])
        local = seen[node]
        seen[node] += 1
        place = Place(before + local, len(nodes), local, counts[node], number, len(names))
        found.append(place)
    return found


def serve(address: str) -> TCPStore:
    """The store of rank 0, on a free port of this machine."""
    from torch._C._distributed_c10d import TCPStore

    return TCPStore(address, 0, is_master=True, wait_for_workers=False)


def connect(meeting: Meeting) -> TCPStore:
    from torch._C._distributed_c10d import TCPStore

    store = TCPStore(
        meeting.address, meeting.port, is_master=False, timeout=_CONNECT, wait_for_workers=False
    )
    store.set_timeout(_FOREVER)
    return store


class ConnectedRanks:
    def __init__(self, place: Place, meeting: Meeting, store: TCPStore) -> None:
        self.rank = place.rank
        self.size = place.size
        self._place, self._meeting, self._store = place, meeting, store
        self._told: Counter[str] = Counter()

    def __reduce__(self) -> tuple[Any, ...]:
        # The process that trains in place of this one connects itself.
        return _connected_ranks, (self._place, self._meeting)

    def broadcast(self, subject: str, decide: Callable[[], T]) -> T:
        """The result of rank 0's `decide`, on all ranks, or its error.

        Other ranks get it as JSON has it, a path as text, and a `RuntimeError` for an error other
        than `TrialStopped`.

        The first call about a subject on a rank belongs to the first one on rank 0, and so on. Rank
        0 does not wait for the others."""
        if self.size == 1:
            return decide()
        self._told[subject] += 1
        key = f"told/{subject}/{self._told[subject]}"
        return self._tell(key, decide) if self.rank == 0 else self._hear(key)

    def _tell(self, key: str, decide: Callable[[], T]) -> T:
        try:
            value = decide()
        except TrialStopped:
            self._store.set(key, json.dumps({"stopped": True}))
            raise
        except Exception as error:
            what = f"{BY_FIRST}: {in_words(error)}"
            self._store.set(key, json.dumps({"error": what}))
            raise
        self._store.set(key, json.dumps({"value": value}, default=str))
        return value

    def _hear(self, key: str) -> Any:
        word = json.loads(self._store.get(key))
        if self._store.add(f"{key}/heard", 1) == self.size - 1:
            self._store.delete_key(key)
            self._store.delete_key(f"{key}/heard")
        if "stopped" in word:
            raise TrialStopped
        if "error" in word:
            raise RuntimeError(word["error"])
        return word["value"]

    def require_equal(self, what: str, value: object) -> None:
        of_first = self.broadcast(what, lambda: repr(value))
        if of_first != repr(value):
            raise ValueError(f"{what} of rank {self.rank} {value!r}, but of rank 0 {of_first}")

    def _serve(self) -> int:
        self._served = serve(self._meeting.address)
        return int(self._served.port)

    @contextmanager
    def joined(self, device: str, *, connects: bool) -> Iterator[None]:
        """The environment that torchrun sets and, if it `connects`, the process group. An error may
        come from a group that is broken, and whose end would wait for the other ranks. It is left
        as it is, and its processes have to end."""
        # A store of its own: a group that is joined again would find the addresses of the last one.
        port = self.broadcast("port", self._serve)
        with _environment(_launched(self._place, Meeting(self._meeting.address, port))):
            if not connects:
                yield
                return
            yield from _connected(device)


def _connected_ranks(place: Place, meeting: Meeting) -> ConnectedRanks:
    return ConnectedRanks(place, meeting, connect(meeting))


def _connected(device: str) -> Iterator[None]:
    from trials.devices import processes

    processes.connect(device)
    is_broken = False
    try:
        yield
    except Pruned:
        raise
    except (Exception, GeneratorExit):  # nobody has ended the context
        is_broken = True
        raise
    finally:
        if not is_broken:
            processes.leave()


def _launched(place: Place, meeting: Meeting) -> dict[str, str]:
    """The environment variables that torchrun sets. Its agent serves the store, as rank 0 has
    done before the training begins."""
    return {
        "RANK": str(place.rank),
        "WORLD_SIZE": str(place.size),
        "LOCAL_RANK": str(place.local_rank),
        "LOCAL_WORLD_SIZE": str(place.local_size),
        "GROUP_RANK": str(place.node),
        "GROUP_WORLD_SIZE": str(place.nodes),
        "ROLE_RANK": str(place.rank),
        "ROLE_WORLD_SIZE": str(place.size),
        "MASTER_ADDR": meeting.address,
        "MASTER_PORT": str(meeting.port),
        "TORCHELASTIC_RUN_ID": str(meeting.port),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
