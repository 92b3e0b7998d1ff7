"""The plugins that are installed, by the entry point `hpsearch.plugins`.

A package names a list of offers there:

    [project.entry-points."hpsearch.plugins"]
    mine = "my_package:offers"

A plugin that cannot be imported is told of, once, and left out.
"""

import logging
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from hpsearch.domain.plugins.offers import Offer, SourcePlugin
from trials.foreign import in_words

GROUP = "hpsearch.plugins"
OURS = "hpsearch"

Kind = TypeVar("Kind")
log = logging.getLogger("hpsearch")
_told: set[tuple[str, str]] = set()


@cache
def installed() -> Mapping[str, tuple[Offer, ...]]:
    """What each plugin offers, by the name of its entry point; our own first."""
    found: dict[str, tuple[Offer, ...]] = {}
    for entry in sorted(
        entry_points(group=GROUP), key=lambda each: (not _is_ours(each), each.name)
    ):
        try:
            offers = tuple(entry.load())
        except Exception as error:  # noqa: BLE001 - it is somebody else's code
            tell_of("plugin", entry.name, error)
        else:
            found.setdefault(entry.name, offers)
    return found


def tell_of(what: str, name: str, error: Exception) -> None:
    """Say that something of a plugin has raised, and is left out; once, whatever else it raises."""
    if (what, name) not in _told:
        _told.add((what, name))
        log.warning("%s %s is left out: %s", what, name, in_words(error))


def offers_of(kind: type[Kind]) -> dict[str, Kind]:
    """The offers of one kind, by their names. Of two with one name the first one counts."""
    found: dict[str, Kind] = {}
    for offers in installed().values():
        for offer in offers:
            if isinstance(offer, kind):
                found.setdefault(offer.name, offer)
    return found


def named(text: str) -> Any:
    """What an offer names as ``module:name``. Raises what importing it raises."""
    module, _, name = text.partition(":")
    return getattr(import_module(module), name)


def imported(what: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """What offers name as ``module:name``, by their names, but for what cannot be imported."""
    found: dict[str, Any] = {}
    for name, text in texts.items():
        try:
            found[name] = named(text)
        except Exception as error:  # noqa: BLE001 - it is somebody else's code
            tell_of(what, name, error)
    return found


def taking(source: str, plugins: Iterable[SourcePlugin]) -> SourcePlugin | None:
    """The first plugin that takes a source; one that raises takes none."""
    for plugin in plugins:
        try:
            if named(plugin.takes)(source):
                return plugin
        except Exception as error:  # noqa: BLE001 - it is somebody else's code
            tell_of("source", plugin.name, error)
    return None


def packages() -> list[str]:
    """The plugins that other packages brought, each with its distribution and version."""
    others = [each for each in entry_points(group=GROUP) if not _is_ours(each) and each.dist]
    return [f"{each.name} ({each.dist.name} {each.dist.version})" for each in others if each.dist]


def _is_ours(entry: EntryPoint) -> bool:
    return entry.value.partition(":")[0].startswith(f"{OURS}.")
