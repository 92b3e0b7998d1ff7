"""Text that others wrote, shown on a terminal without letting it control the terminal."""

from typing import Any

from rich.table import Table
from rich.text import Text


def escaped(text: str) -> str:
    """The text with control characters written as escapes: ``\\x1b[31m``."""
    return "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable() or character in "\n\t":
        return character
    return character.encode("unicode_escape").decode()


def plain(content: str | Text) -> Text:
    """A text for rich to print, without markup or control characters. A `Text` keeps its style."""
    if isinstance(content, str):
        return Text(escaped(content))
    return Text(escaped(content.plain), style=content.style)


class Sheet(Table):
    """A table that prints its heads and cells as `plain` does."""

    def add_column(self, header: Any = "", footer: Any = "", **more: Any) -> None:
        super().add_column(plain(header), footer, **more)

    def add_row(self, *cells: Any, **more: Any) -> None:
        super().add_row(*map(plain, cells), **more)
