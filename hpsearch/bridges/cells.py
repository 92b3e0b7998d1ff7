"""Numbers, words and states as other programs write them."""

from __future__ import annotations

import math
import re
from typing import Any

from hpsearch.domain.lifecycle import State
from trials.settings import nearest

_WORDS = {"true": True, "false": False}
_WHOLE = re.compile(r"[+-]?\d{1,18}")

STATES = {
    **dict.fromkeys(("complete", "completed", "finished", "done", "terminated"), State.COMPLETE),
    **dict.fromkeys(("success", "succeeded", "ok"), State.COMPLETE),
    **dict.fromkeys(("pruned", "stopped", "killed", "canceled", "cancelled"), State.PRUNED),
    **dict.fromkeys(("preempted", "preempting", "paused", "running"), State.RUNNING),
    **dict.fromkeys(("waiting", "queued", "pending"), State.QUEUED),
    **dict.fromkeys(("failed", "fail", "error", "crashed"), State.FAILED),
}
"""States by the words of Optuna, Ray Tune, W&B, and usual ones. A run whose state is running or
queued has not ended."""


def is_empty(cell: Any) -> bool:
    """True for a cell without a value."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def scalar(cell: Any) -> Any:
    """A cell as a number, true or false if its text is one; else the text."""
    if not isinstance(cell, str):
        return cell if isinstance(cell, bool | int | float) else str(cell)
    text = cell.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _WHOLE.fullmatch(text):
        return int(text)
    found = number(text)
    return text if found is None or not math.isfinite(found) else found


def number(cell: Any) -> float | None:
    """A cell as a number, finite or not; None if it is not a number."""
    if isinstance(cell, bool) or "_" in str(cell):
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def state(word: Any) -> State:
    """The state that a word stands for. Raises ValueError, with what to write, if none."""
    text = str(word).strip().lower().removeprefix("trialstate.")
    if text in STATES:
        return STATES[text]
    raise ValueError(f"{str(word)!r} is not a known state; {nearest(text, STATES)}")
