"""The sweep of a shell script, or of a SLURM array's: plain loops over values and arrays of them,
around one command."""

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from hpsearch.errors import UserError

TASK = "SLURM_ARRAY_TASK_ID"
_FOR = re.compile(r"for\s+(\w+)\s+in\s+(.*)", re.DOTALL)
_ARRAY = re.compile(r"(?:declare\s+-a\s+)?(\w+)=\((.*)\)", re.DOTALL)
_ASSIGNED = re.compile(r"(?:export\s+|local\s+)?(\w+)=(.*)", re.DOTALL)
_WITH_VARIABLES = re.compile(r"(?:\w+=[\w.,:/-]*\s+)+[^\s=]+\s.*", re.DOTALL)
_ELEMENT = re.compile(r"\"?\$\{(\w+)\[([^][]+)\]\}\"?")
_IGNORED = re.compile(
    r"(?:do|done|set|cd|module|source|\.|conda|echo|mkdir|sleep|wait|ulimit|hostname|date|nvidia-smi"
    r"|export)\b"
)
_REDIRECTED = re.compile(r"\s*(?:\d?&?>{1,2}\s*&?\S+|\|\s*tee\s.*|&\s*$)")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_UNKNOWN = re.compile(r"(?:if|while|until|case|function|read|eval)\b|\w+\s*\(\)")
Lists = dict[str, list[str]]  # the values of variables, by their names
HINT = "write the command with its values, or the study file by hand: docs/command.md"


@dataclass
class ShellGrid:
    """A command line with variables such as `$lr`, and the values of each."""

    line: str = ""
    grids: dict[str, list[str]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    """By the name of a variable that is an element of an array: the place in it."""

    def together(self) -> list[list[str]]:
        """The variables whose values the script takes from the same place of several arrays."""
        of_place: dict[str, list[str]] = {}
        for name in self.grids.keys() & self.places.keys():
            of_place.setdefault(self.places[name], []).append(name)
        return [sorted(names) for names in of_place.values() if len(names) > 1]


def is_script(name: str, text: str) -> bool:
    """True for a file that may have a sweep of a shell, by its name or its first line."""
    has_name = re.search(r"\.(?:sh|bash|sbatch|slurm)$", name) is not None
    return has_name or bool(re.match(r"#!.*\b(?:ba|z|k)?sh\b", text))


def sweep_in(text: str) -> ShellGrid | None:
    """The sweep of a script; None without loops and arrays. Raises UserError with the line."""
    statements = list(_statements(text))
    if not any(re.match(r"for\s", each) or TASK in each for _, each in statements):
        return None
    found, lists = ShellGrid(), Lists()
    for number, statement in statements:
        _take(found, lists, number, statement)
    if not found.line:
        raise UserError("the script has no command with the values of its loops", HINT)
    for name in set(_VARIABLE.findall(found.line)) & lists.keys():
        if len(lists[name]) == 1:  # a constant
            found.line = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", lists[name][0], found.line)
        else:
            found.grids[name] = lists[name]
    if not found.grids:
        raise UserError(f"no plain values reach {found.line!r}", HINT)
    return found


def _statements(text: str) -> list[tuple[int, str]]:
    """The statements of a script with the numbers of their lines, without comments."""
    found: list[tuple[int, str]] = []
    begun, first = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        first = first if begun else number
        begun += re.sub(r"(?:^|\s)#.*", "", line)
        if begun.endswith("\\") or begun.count("(") > begun.count(")"):
            begun = begun.removesuffix("\\") + " "
            continue
        for part in re.split(r";|(?<![&>])&&", begun):
            statement = re.sub(r"^\s*(?:do|then)\s+", "", part).strip()
            if statement:
                found.append((first, statement))
        begun = ""
    return found


def _take(found: ShellGrid, lists: Lists, number: int, statement: str) -> None:
    loop, array = _FOR.fullmatch(statement), _ARRAY.fullmatch(statement)
    assigned = _ASSIGNED.fullmatch(statement)
    if loop is not None:
        lists[loop[1]] = _values(loop[2], lists, number)
    elif array is not None:
        lists[array[1]] = _values(array[2], lists, number)
    elif assigned is not None and _WITH_VARIABLES.fullmatch(statement) is None:
        _assign(found, lists, number, assigned[1], assigned[2])
    elif _IGNORED.match(statement):
        return
    elif found.line or _UNKNOWN.match(statement):
        raise _not_plain(number, statement)
    else:
        line = _REDIRECTED.sub("", statement)
        line = re.sub(r"^(?:srun|nohup|time)\s+(?:-\S+\s+)*", "", line)
        for element in _ELEMENT.finditer(line):
            if element[1] not in lists:
                raise _not_plain(number, statement)
            found.places[element[1]] = element[2].strip("$ ")
        found.line = _ELEMENT.sub(r"$\1", line)
        if re.search(r"\$\(|`|\||<", found.line):
            raise _not_plain(number, statement)


def _assign(found: ShellGrid, lists: Lists, number: int, name: str, value: str) -> None:
    element = _ELEMENT.fullmatch(value)
    if element is not None and element[1] in lists:
        lists[name] = lists[element[1]]
        found.places[name] = element[2].strip("$ ")
    elif not (value.startswith("$((") or TASK in value):  # else a place in arrays
        lists[name] = _values(value.strip("\"'"), lists, number)


def _values(text: str, lists: Mapping[str, Sequence[str]], number: int) -> list[str]:
    """The words that a shell would make of a text."""
    sequence = re.fullmatch(r"\$\(\s*seq\s+([^()$]+)\)|`seq\s+([^`$]+)`", text.strip())
    if sequence is not None:
        return _sequence((sequence[1] or sequence[2]).split(), number, text)
    whole = re.sub(r"\"?\$\{(\w+)\[[@*]\]\}\"?", r"$\1", text)
    try:
        words = shlex.split(whole)
    except ValueError:
        raise _not_plain(number, text) from None
    values: list[str] = []
    for word in words:
        named = _VARIABLE.fullmatch(word)
        if named is not None and named[1] in lists:
            values += lists[named[1]]
        elif re.search(r"[$`*?]", word):
            raise _not_plain(number, text)
        else:
            values += _expanded(word, number)
    return values


def _expanded(word: str, number: int) -> list[str]:
    """The words of one with braces: `{1..3}`, `x{a,b}`."""
    found = re.fullmatch(r"(.*?)\{([^{}]*(?:,|\.\.)[^{}]*)\}(.*)", word)
    if found is None:
        return [word]
    before, inside, after = found.groups()
    ends = inside.split("..")
    if len(ends) > 1:
        parts = _sequence([ends[0], *(ends[2:] or ["1"]), ends[1]], number, word)
    else:
        parts = inside.split(",")
    rest = _expanded(after, number)
    return [f"{before}{part}{end}" for part, end in itertools.product(parts, rest)]


def _sequence(words: Sequence[str], number: int, text: str) -> list[str]:
    try:
        first, *rest = [Decimal(word) for word in words]
        if not rest:
            first, rest = Decimal(1), [first]
        by = rest[0] if len(rest) == 2 else Decimal(1)
        many = int((rest[-1] - first) / by) + 1
    except (ArithmeticError, ValueError):
        raise _not_plain(number, text) from None
    if not 0 < many <= 1000:
        raise _not_plain(number, text)
    return [f"{first + by * each}" for each in range(many)]


def _not_plain(number: int, text: str) -> UserError:
    return UserError(f"line {number}: {text[:80]!r} is not a plain part of a sweep", HINT)
