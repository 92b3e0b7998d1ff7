"""YAML text as plain values, with the line of every key and item.

It is stricter than YAML: one document, no tags but `!!float` and its like, no repeated keys, keys
are text. All mistakes are returned, as a list of problems.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from trials.contract import Problem

MOST_NODES = 100_000
"""The most values in one file with its aliases and merges expanded: a few nested ones can give
billions. A value counts once more for each 100 letters of it."""
LONGEST_PLACE = 1_000  # letters of the dotted place of a value
PLAIN_TAGS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "int", "null", "str"))
LARGEST = 2**1024
"""No whole number is as large: no float could hold it, and Python prints only 4,300 digits."""


@dataclass
class Source:
    """The values of a YAML text, and the line of each."""

    value: Any = None
    """The document as plain values; None for an empty one or one that does not parse."""
    lines: dict[str, int] = field(default_factory=lambda: {"": 1})
    """The line, from 1, of every key and item by its dotted place, as ``space.lr.choices[2]``."""
    problems: list[Problem] = field(default_factory=list)  # the mistakes of the YAML itself
    remarks: dict[str, str] = field(default_factory=dict)
    """By its place: how a value without quotes is read that may mean something else."""

    def line_of(self, where: str) -> int:
        while where not in self.lines:
            where = where[: max(where.rfind("."), where.rfind("["), 0)]
        return self.lines[where]


def place(where: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{where}[{key}]"
    return f"{where}.{key}" if where else key


def read(text: str) -> Source:
    source = Source()
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            source.value = _Builder(loader, source).build(node, "")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        source.lines[""] = mark.line + 1 if mark else 1
        source.problems.append(Problem("", _explained(error)))
    except yaml.reader.ReaderError as error:
        source.lines[""] = text.count("\n", 0, error.position) + 1
        what = f"contains the control character {error.character!r}; remove it"
        source.problems.append(Problem("", what))
    except RecursionError:
        what = "is nested too deeply, has very long names, or a part of it contains itself"
        source.problems.append(Problem("", f"{what}; use fewer levels"))
    return source


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, but for tags and for more values than a study file has."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._written = _Count()
        self._merged = _Count()

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._written.add(1, event.start_mark)
        is_plain = isinstance(event, yaml.ScalarEvent) and event.tag in PLAIN_TAGS
        if getattr(event, "tag", None) is not None and not is_plain:
            problem = f"found the tag {event.tag}"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def flatten_mapping(self, node: MappingNode) -> None:
        """Put the values of the mappings that `<<` names in its place. Of several with one key the
        first counts, and the mapping's own before all. PyYAML's own keeps every one of them, and
        they multiply from merge to merge."""
        own = [pair for pair in node.value if not pair[0].tag.endswith(":merge")]
        if len(own) == len(node.value):
            return
        merged: dict[str, tuple[Node, Node]] = {}
        for key, value in node.value:
            if key.tag.endswith(":merge"):
                for each in value.value if isinstance(value, SequenceNode) else [value]:
                    self._merge(each, merged)
        merged |= {_text_of(key): (key, value) for key, value in own}
        node.value = list(merged.values())

    def _merge(self, node: Node, into: dict[str, tuple[Node, Node]]) -> None:
        if not isinstance(node, MappingNode):
            problem = "<< takes mappings"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        self.flatten_mapping(node)
        self._merged.add(1 + len(node.value), node.start_mark)
        for key, value in node.value:
            into.setdefault(_text_of(key), (key, value))


def _text_of(key: Node) -> str:
    if not isinstance(key, ScalarNode):
        problem = "found a key that is a list or a mapping"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
    return str(key.value)


class _Count:
    def __init__(self) -> None:
        self._number = 0

    def add(self, number: int, mark: yaml.Mark) -> None:
        self._number += number
        if self._number > MOST_NODES:
            problem = f"more than {MOST_NODES} values"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


class _Builder:
    def __init__(self, loader: _Loader, source: Source) -> None:
        self._loader = loader
        self._source = source
        self._nodes = _Count()

    def build(self, node: Node, where: str) -> Any:
        letters = len(node.value) if isinstance(node, ScalarNode) else 0
        self._nodes.add(1 + letters // 100, node.start_mark)
        if len(where) > LONGEST_PLACE:
            raise RecursionError
        if isinstance(node, MappingNode):
            return self._mapping(node, where)
        if isinstance(node, SequenceNode):
            return self._sequence(node, where)
        return self._scalar(node, where)

    def _mapping(self, node: MappingNode, where: str) -> dict[str, Any]:
        self._refuse_repeated_keys(node, where)
        self._loader.flatten_mapping(node)
        value: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _text_of(key_node)
            inside = place(where, key)
            self._source.lines[inside] = key_node.start_mark.line + 1
            if not key_node.tag.endswith((":str", ":value")):
                self._refuse(inside, "YAML does not read this key as text; put it in quotes")
            value[key] = self.build(value_node, inside)
        return value

    def _refuse_repeated_keys(self, node: MappingNode, where: str) -> None:
        first: dict[str, int] = {}
        for key_node, _ in node.value:
            key = _text_of(key_node)
            line = key_node.start_mark.line + 1
            if key in first:
                what = f"is written twice, in lines {first[key]} and {line}; keep one"
                self._refuse(place(where, key), what)
            first.setdefault(key, line)

    def _sequence(self, node: SequenceNode, where: str) -> list[Any]:
        value = []
        for i, item in enumerate(node.value):
            inside = place(where, i)
            self._source.lines[inside] = item.start_mark.line + 1
            value.append(self.build(item, inside))
        return value

    def _scalar(self, node: Node, where: str) -> Any:
        assert isinstance(node, ScalarNode)
        text = str(node.value)
        kind = node.tag.rpartition(":")[2]
        if node.style is None and (remark := _remark(text, kind)) is not None:
            self._source.remarks[where] = remark
        is_base_60 = kind in ("int", "float") and ":" in text
        if kind in ("str", "value", "timestamp") or is_base_60:
            return text
        try:
            value = self._loader.construct_object(node)
        except (
            ValueError,
            KeyError,
        ):  # digits that only look like a number: 0x_, or thousands of them
            value = LARGEST
        if isinstance(value, int) and abs(value) >= LARGEST:
            what = f"{text[:40]} is not a number that this program can hold"
            self._refuse(where, f"{what}; put it in quotes if it is text")
            return None
        return value

    def _refuse(self, where: str, what: str) -> None:
        self._source.problems.append(Problem(where, what))


_MOMENT = re.compile(r"\d+(?::[0-5]?\d)+(?:\.\d*)?$")


def _remark(text: str, kind: str) -> str | None:
    """How a value without quotes is read, where YAML 1.1 and other programs differ."""
    quotes = "put it in quotes if it is a text"
    if kind == "bool" and text.lower() not in ("true", "false"):
        truth = "true" if text.lower() in ("yes", "on") else "false"
        return f"{text} is read as {truth}; {quotes}, or write {truth}"
    if kind == "int" and re.match(r"[-+]?0[0-7_]+$", text):
        number = int(text.replace("_", ""), 8)
        return f"{text} is read as {number}, as its 0 makes it octal; {quotes}"
    if kind in ("int", "float", "str") and _MOMENT.match(text):
        return f"{text} is read as a text; write the number of seconds if it is a time"
    if kind == "timestamp":
        return f"{text} is read as a text, not as a date; put it in quotes"
    if kind == "str" and text in ("y", "Y", "n", "N", "None", "none"):
        return f"{text} is read as a text; write true, false or null if it is not one"
    if kind == "str" and _is_number(text):
        return f"{text} is read as a text; write a number as {_written(text)}, or put it in quotes"
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii()


def _written(text: str) -> str:
    written = repr(float(text))
    if written.strip("-") in ("inf", "nan"):
        return written.replace("inf", ".inf").replace("nan", ".nan")
    whole, e, power = written.partition("e")
    return f"{whole if '.' in whole else whole + '.0'}{e}{power}"


_REMEDIES = {
    "found the tag": "write plain values without tags",
    "found character '\\t'": "indent with spaces, not tabs",
    "but found another document": "keep one document in the file",
    "found a key that is": "write names as keys",
    "<< takes": "name mappings by their anchors, such as <<: *defaults",
    "more than": "shorten the file or its aliases",
    "mapping values are not allowed": "check the indentation, and quote text that contains ': '",
}
"""Remedies for a problem of PyYAML's, by how its text starts."""


def _explained(error: yaml.MarkedYAMLError) -> str:
    problem = (error.problem or "").strip()
    remedies = (text for start, text in _REMEDIES.items() if problem.startswith(start))
    remedy = next(remedies, "check indentation, quotes and brackets")
    mark = error.problem_mark
    column = f" (column {mark.column + 1})" if mark else ""
    return f"not valid here: {problem}{column}; {remedy}"
