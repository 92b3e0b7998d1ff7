"""Numbers, words, states and times as other programs write them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
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
"""Words for states, of Optuna, Ray Tune, W&B, and the usual ones. Running and queued stand for runs
that have not ended."""


def is_empty(cell: Any) -> bool:
    """Whether a cell holds nothing."""
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
    """A cell as a number, perhaps not a finite one; None if it is not a number."""
    if isinstance(cell, bool) or "_" in str(cell):
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def state(word: Any, known: Mapping[str, State] = STATES) -> State:
    """The state that a word stands for.

    Raises:
        ValueError: It is not known; says what to do.
    """
    text = str(word).strip().lower().removeprefix("trialstate.")
    if text in known:
        return known[text]
    hint = "map it in a mapping file (--mapping): states: {" + str(word) + ": complete}"
    raise ValueError(f"{str(word)!r} is not a known state; {nearest(text, known)} Or {hint}")


def seconds(cell: Any) -> float | None:
    """A time as seconds since the epoch; None if it is not a time.

    Without a time zone it is taken as UTC, which is how W&B writes times.
    """
    if is_empty(cell):
        return None
    if isinstance(cell, datetime):
        moment = cell
    else:
        found = number(cell)
        if found is not None:
            return found if math.isfinite(found) and 0 <= found < 1e11 else None
        try:
            moment = datetime.fromisoformat(str(cell).strip())
        except ValueError:
            return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()


def flat(nested: Mapping[str, Any], between: str = ".") -> dict[str, Any]:
    """A nested mapping with dotted names; lists and the like become their text."""
    found: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, dict) and value:
            inner = flat(value, between)
            found |= {f"{name}{between}{below}": each for below, each in inner.items()}
        elif value is None or isinstance(value, bool | int | float | str):
            found[str(name)] = value
        else:
            found[str(name)] = str(value)
    return found


def chosen(
    params: Mapping[str, Any], wanted: Mapping[str, str] | None
) -> tuple[dict[str, Any], list[str]]:
    """The parameters of a run that are wanted, by our names; None wants all.

    Returns:
        Those that it has, and the source's names of those that it lacks.
    """
    if wanted is None:
        return dict(params), []
    found = {ours: params[theirs] for ours, theirs in wanted.items() if theirs in params}
    return found, [theirs for theirs in wanted.values() if theirs not in params]
