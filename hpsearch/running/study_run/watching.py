"""Watches of a study that plugins offer. One that raises is told of, once, and left out."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from hpsearch.brain.study import Study
from hpsearch.domain.history import Changes
from hpsearch.domain.plugins.door import named, offers_of, tell_of
from hpsearch.domain.plugins.offers import WatchPlugin
from hpsearch.domain.records import StudyRecord
from hpsearch.errors import UserError
from hpsearch.running.driver.loop import Driver


class Watch:
    """Watches a study from inside its driver, which waits for it; it must not change anything."""

    def begins(self, driver: Driver) -> None:
        """The study is about to be driven."""

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Take in what a tick has committed."""

    def ended(self, record: StudyRecord) -> None:
        """The driver has ended in order."""


class Watches(Watch):
    """Several watches, by the names of their plugins."""

    def __init__(self, watches: Mapping[str, Watch]) -> None:
        self._watches = dict(watches)

    def begins(self, driver: Driver) -> None:
        self._each(lambda one: one.begins(driver))

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        self._each(lambda one: one.watch(study, changes, now))

    def ended(self, record: StudyRecord) -> None:
        self._each(lambda one: one.ended(record))

    def _each(self, call: Callable[[Watch], None]) -> None:
        for name, one in list(self._watches.items()):
            try:
                call(one)
            except Exception as error:  # noqa: BLE001 - it is somebody else's code
                del self._watches[name]
                tell_of("watch", f"--{name}", error)


Prepared = Mapping[str, AbstractContextManager[Watch]]


def prepared(study: str, given: Mapping[str, str]) -> Prepared:
    """The watches of a study, by the texts of their options. Raises UserError if one is wrong."""
    plugins, found = offers_of(WatchPlugin), {}
    for name, text in given.items():
        with _left_out(name):
            found[name] = named(plugins[name].watch)(study, text)
    return found


@contextmanager
def watching(watches: Prepared) -> Iterator[Watches]:
    """Watch a study while the block lasts. Raises UserError if a watch cannot begin."""
    begun = {}
    with ExitStack() as at_the_end:
        for name, one in watches.items():
            with _left_out(name):
                begun[name] = one.__enter__()
                at_the_end.push(partial(_leave, name, one))
        yield Watches(begun)


def _leave(name: str, one: AbstractContextManager[Watch], *raised: Any) -> None:
    with _left_out(name):
        one.__exit__(*raised)


@contextmanager
def _left_out(name: str) -> Iterator[None]:
    """Leave a watch out whose code raises anything but a UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - it is somebody else's code
        tell_of("watch", f"--{name}", error)
