"""The command line of a Hydra application: what a multirun sweeps, as parameters of a study.

The functions of https://hydra.cc/docs/advanced/override_grammar/extended.
"""

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from hpsearch.errors import UserError
from hpsearch.study_file.text import value_of
from trials.descriptions.command_line import FOLDER

RUN_FOLDER = f"hydra.run.dir={{{FOLDER}}}"
_SHOWS_IT = re.compile(r"~|\+{1,2}[\w$][^=\s]*=|hydra[./][^=\s]+=|--multirun$")
_IMPORT = re.compile(r"^\s*(?:import|from)\s+hydra\b", re.MULTILINE)
_OF_SWEEPERS = re.compile(r"\+{0,2}hydra(?:[./](?:sweep|launcher)|\.run\.dir=|\.mode=)|--multirun$")
"""What a study decides in place of Hydra."""
_CALL = re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL)
_NAMED = re.compile(r"(\w+)\s*=\s*(.*)", re.DOTALL)
_ARGUMENTS = {"interval": ("start", "end"), "range": ("start", "stop", "step")}
_CASTS: dict[str, type] = {"int": int, "float": float, "str": str}
_OPEN, _CLOSE, _QUOTES = "([{", ")]}", "\"'"

Sweep = dict[str, Any]  # a parameter as a study file has it


def is_application(words: Sequence[str], folder: Path) -> bool:
    """True for a command line of Hydra's, by its words or the imports of its script."""
    if any(map(_SHOWS_IT.match, words)):
        return True
    scripts = [folder / word for word in words if word.endswith(".py")]
    return any(
        _IMPORT.search(each.read_text(errors="replace")) for each in scripts if each.is_file()
    )


def without_sweeper(words: Sequence[str]) -> list[str]:
    """The words without those for a multirun and for the folder of a run."""
    kept = []
    for before, word in zip(["", *words], words, strict=False):
        is_multirun = word == "-m" and not Path(before).name.startswith("python")
        if not (is_multirun or _OF_SWEEPERS.match(word)):
            kept.append(word)
    return kept


def sweep_of(value: str) -> Sweep | None:
    """What the value of an override sweeps; None where it is one value. Raises UserError."""
    parts = _parts(value)
    if len(parts) > 1:
        return _choices(parts)
    call = _CALL.fullmatch(value.strip())
    if call is None:
        return None
    try:
        return _called(call[1], _parts(call[2]))
    except (ArithmeticError, KeyError, ValueError):
        what = f"{value!r} is not a sweep that can be read"
        raise UserError(what, "write it as hydra.cc says, or the study file by hand") from None


def _called(function: str, arguments: Sequence[str]) -> Sweep | None:
    named = {each[1]: each[2] for each in map(_NAMED.fullmatch, arguments) if each}
    plain = [each for each in arguments if not _NAMED.fullmatch(each)]
    if function == "choice":
        return _choices(plain)
    if function in _ARGUMENTS:
        given = dict(zip(_ARGUMENTS[function], plain, strict=False)) | named
        if function == "range" and given.keys() == {"start"}:
            given = {"start": "0", "stop": given["start"]}
        return _between({name: Decimal(text) for name, text in given.items()})
    if function not in ("tag", *_CASTS):
        return None
    inner = plain[-1:] if function == "tag" else plain
    swept = sweep_of(named.get("sweep") or ",".join(inner))
    if swept is not None and function in _CASTS:
        return _cast(swept, _CASTS[function])
    return {**swept, "log": True} if swept and "log" in plain and "low" in swept else swept


def _between(given: Mapping[str, Decimal]) -> Sweep:
    start, step = given["start"], given.get("step", Decimal(1))
    if "end" in given:
        return _limits(start, given["end"])
    last = start + step * (math.ceil((given["stop"] - start) / step) - 1)
    found = _limits(min(start, last), max(start, last))
    return found if abs(step) == 1 else {**found, "step": value_of(str(abs(step)))}


def _limits(low: Decimal, high: Decimal) -> Sweep:
    """Those of whole numbers where both are written so."""
    limits = {"low": value_of(str(low)), "high": value_of(str(high))}
    is_whole = all(isinstance(each, int) for each in limits.values())
    return _cast({"type": "int", **limits}, int if is_whole else float)


def _cast(sweep: Sweep, kind: type) -> Sweep:
    if "choices" in sweep:
        return {**sweep, "choices": [kind(each) for each in sweep["choices"]]}
    cast: Sweep = {name: kind(sweep[name]) for name in ("low", "high", "step") if name in sweep}
    return {**sweep, "type": "int" if kind is int else "float", **cast}


def _choices(parts: Sequence[str]) -> Sweep:
    """Numbers, true and false are read; all else stays as Hydra reads it."""
    read = [value_of(part) for part in parts]
    pairs = zip(parts, read, strict=True)
    values = [each if isinstance(each, int | float) else part for part, each in pairs]
    return {"type": "categorical", "choices": list(dict.fromkeys(values))}


def _parts(text: str) -> list[str]:
    """The parts of a text between commas that are in no bracket and no quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if letter in _QUOTES and quote in ("", letter):
            quote = "" if quote else letter
        elif not quote:
            depth += (letter in _OPEN) - (letter in _CLOSE)
        if letter == "," and not (depth or quote):
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
