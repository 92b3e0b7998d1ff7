"""YAML text as plain values, with the line of every key and item.

It is stricter than YAML: one document, no tags, no repeated keys, keys are text. All mistakes are
returned, as a list of problems.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hpsearch.errors import UserError
from hpsearch.study_file.validation import place
from trials.contract import Problem
from trials.data import files

MOST_NODES = 100_000
"""The most values in one file with its aliases expanded: a few nested ones can give billions."""


@dataclass
class Source:
    """The values of a YAML text, and the line of each."""

    value: Any = None
    """The document as plain values; None for an empty one or one that does not parse."""
    lines: dict[str, int] = field(default_factory=lambda: {"": 1})
    """The line, from 1, of every key and item by its dotted place, as ``space.lr.choices[2]``."""
    problems: list[Problem] = field(default_factory=list)
    """The mistakes of the YAML itself."""

    def line_of(self, where: str) -> int:
        """The line of a place, or of the nearest part around it that the text has."""
        while where not in self.lines:
            where = where[: max(where.rfind("."), where.rfind("["), 0)]
        return self.lines[where]


def text_of(path: Path, kind: str = "file", hint: str = "check the path") -> str:
    """The text of a file; errors name it by its kind, and give the hint if there is none.

    Raises:
        UserError: It cannot be read, or is not text.
    """
    try:
        files.refuse_odd(path)
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such {kind}", hint) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        what = f"{path}:{line}: is not UTF-8 text ({error.reason})"
        raise UserError(what, files.conversion(path, error)) from None
    except ValueError as error:
        raise UserError(f"{path} {error}", f"a {kind} is a text file") from None
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}"
        raise UserError(what, "check the path and its permissions") from None


def read(text: str) -> Source:
    """Read one YAML document."""
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
        what = "is nested too deeply, or a part of it contains itself; use fewer levels"
        source.problems.append(Problem("", what))
    return source


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, refusing tags."""

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """Compose the next node, which must not have a tag."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) is not None:
            problem = f"found the tag {event.tag}"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        return super().compose_node(parent, index)


class _Builder:
    def __init__(self, loader: _Loader, source: Source) -> None:
        self._loader = loader
        self._source = source
        self._nodes = 0

    def build(self, node: Node, where: str) -> Any:
        """The value of a node at a dotted place."""
        self._nodes += 1
        if self._nodes > MOST_NODES:
            problem = f"more than {MOST_NODES} values"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        if isinstance(node, MappingNode):
            return self._mapping(node, where)
        if isinstance(node, SequenceNode):
            return self._sequence(node, where)
        return self._scalar(node, where)

    def _mapping(self, node: MappingNode, where: str) -> dict[str, Any]:
        self._refuse_repeated_keys(node, where)
        # Merges what `<<` names. The mapping's own keys come later and win.
        self._loader.flatten_mapping(node)
        value: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            inside = place(where, key)
            self._source.lines[inside] = key_node.start_mark.line + 1
            if not key_node.tag.endswith((":str", ":value")):
                self._refuse(inside, "YAML does not read this key as text; put it in quotes")
            value[key] = self.build(value_node, inside)
        return value

    def _refuse_repeated_keys(self, node: MappingNode, where: str) -> None:
        first: dict[str, int] = {}
        for key_node, _ in node.value:
            key = str(key_node.value)
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
        is_base_60 = kind in ("int", "float") and ":" in text
        if kind in ("str", "value", "timestamp") or is_base_60:
            return text
        try:
            return self._loader.construct_object(node)
        except ValueError:  # digits that only look like a number: 0x_, or thousands of them
            what = f"{text[:40]} is not a number that this program can hold"
            self._refuse(where, f"{what}; put it in quotes if it is text")
            return None

    def _refuse(self, where: str, what: str) -> None:
        self._source.problems.append(Problem(where, what))


_REMEDIES = {
    "found the tag": "write plain values without tags",
    "found character '\\t'": "indent with spaces, not tabs",
    "but found another document": "keep one document in the file",
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
