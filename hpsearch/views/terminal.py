"""What others wrote, shown on a terminal as it is: as text, never as something that steers the terminal."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text


def escaped(text: str) -> str:
    """The text with what would steer a terminal written as an escape: ``\\x1b[31m``."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def plain(content: str | Text) -> Text:
    """A text for rich to print: no markup is looked for in it, and it steers nothing. A `Text` keeps its one style."""
    return Text(escaped(content)) if isinstance(content, str) else Text(escaped(content.plain), style=content.style)


class Sheet(Table):
    """A table that prints its heads and cells as `plain` does."""

    def add_column(self, header: Any = "", footer: Any = "", **more: Any) -> None:
        super().add_column(plain(header), footer, **more)

    def add_row(self, *cells: Any, **more: Any) -> None:
        super().add_row(*map(plain, cells), **more)
