"""Workers and current attempts as the brain knows them: what lives only while a driver does."""

from __future__ import annotations

from dataclasses import dataclass

from hpsearch.records import Attempt


@dataclass
class Slot:
    """A worker as the brain knows it."""

    name: str
    node: str
    device: str
    gpus: float
    holds: tuple[int, int] | None = None
    """The attempt it works on, current or on its way out."""


@dataclass
class Live:
    """A current attempt."""

    attempt: Attempt
    slot: Slot
    until: float
    resource: float
    """Where its last report stood."""
    heard: float
    """When it last gave word."""
    stopping: str | None = None
    """Why it was told to save and stop."""
