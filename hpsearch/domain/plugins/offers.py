"""The things that a plugin may offer, each under a name.

A plugin is a list of them. Making them imports nothing that takes long: the functions in them do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hpsearch.domain.plugins.news import Tracker


@dataclass(frozen=True)
class TrackerPlugin:
    """An experiment tracker, which a study file names under `track`.

    Attributes:
        options: The keys that it takes there.
        open: Makes the tracker of one study from its options, and the folder of the study file,
            which relative paths among them belong to. It and the tracker may raise anything.
        packages: The distributions one of which it needs; none if it needs none.
    """

    name: str
    options: type[BaseModel]
    open: Callable[[Any, Path], Tracker]
    packages: tuple[str, ...] = ()


Offer = TrackerPlugin
