"""Text of objects that code of others made: errors above all, whose own methods may fail as well.

But for `plain`, none of these functions raises, and what they give is plain text of bounded length.
"""

import traceback
from collections.abc import Callable

MOST_LETTERS = 2_000  # of a text that is recorded
MOST_OF_A_TRACEBACK = 20_000


def text_of(value: object, most: int = MOST_LETTERS) -> str:
    return cut(_taken(str, value), most)


def code_of(value: object, most: int = MOST_LETTERS) -> str:
    return cut(_taken(repr, value), most)


def line_of(error: BaseException) -> str:
    """The first line of an error's text, or its type where it has none."""
    lines = text_of(error).split("\n")
    return next((line.strip() for line in lines if line.strip()), _type_of(error))


def in_words(error: BaseException) -> str:
    """An error by its type and its text, as the end of a traceback has it."""
    text = text_of(error)
    return f"{_type_of(error)}: {text}" if text else _type_of(error)


def traceback_of(error: BaseException) -> str:
    """An error with where it was raised."""
    whole = _taken(lambda each: "".join(traceback.format_exception(each)), error)
    return cut(whole, MOST_OF_A_TRACEBACK)


def plain(text: str) -> str:
    """A text that is of no type of theirs, whose module other processes may not have."""
    return str.__getitem__(text, slice(None))


def cut(text: str, most: int = MOST_LETTERS) -> str:
    """A text without its middle, where it is too long."""
    if len(text) <= most:
        return text
    end = most // 2
    left_out = f" ... {len(text) - 2 * end:,} letters are left out ... "
    return text[:end] + left_out + text[-end:]


def _type_of(value: object) -> str:
    # Past a metaclass, which may have others of its own.
    name: str = type.__dict__["__qualname__"].__get__(type(value))
    module: object = type.__dict__["__module__"].__get__(type(value))
    is_plain = type(module) is not str or module in ("builtins", "__main__")
    return name if is_plain else f"{module}.{name}"


def _taken(give: Callable[..., str], value: object) -> str:
    try:
        return plain(give(value))
    except BaseException as failure:  # noqa: BLE001 - an error of theirs is not ours
        return f"(it has no text: that raises {_type_of(failure)})"
