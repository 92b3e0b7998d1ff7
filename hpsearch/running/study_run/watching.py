"""Watches of a study that plugins offer. One that raises is told of, once, and left out."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

from hpsearch.brain.study import Study
from hpsearch.domain.history import Changes
from hpsearch.domain.plugins.door import named, offers_of
from hpsearch.domain.plugins.offers import WatchPlugin
from hpsearch.domain.records import StudyRecord
from hpsearch.running.driver.loop import Driver

log = logging.getLogger("hpsearch")


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
        """The study is about to be driven."""
        self._each(lambda one: one.begins(driver))

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Take in what a tick has committed."""
        self._each(lambda one: one.watch(study, changes, now))

    def ended(self, record: StudyRecord) -> None:
        """The driver has ended in order."""
        self._each(lambda one: one.ended(record))

    def _each(self, call: Callable[[Watch], None]) -> None:
        for name, one in list(self._watches.items()):
            try:
                call(one)
            except Exception as error:  # noqa: BLE001 - it is somebody else's code
                del self._watches[name]
                log.warning("--%s is left out: %s: %s", name, type(error).__name__, error)


Prepared = Mapping[str, AbstractContextManager[Watch]]


def prepared(study: str, given: Mapping[str, str]) -> Prepared:
    """The watches of a study, by the texts of their options. Raises UserError if one is wrong."""
    plugins = offers_of(WatchPlugin)
    return {name: named(plugins[name].watch)(study, text) for name, text in given.items()}


@contextmanager
def watching(watches: Prepared) -> Iterator[Watches]:
    """Watch a study while the block lasts. Raises UserError if a watch cannot begin."""
    with ExitStack() as while_watched:
        yield Watches({name: while_watched.enter_context(one) for name, one in watches.items()})
