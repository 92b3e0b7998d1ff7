"""Text of objects that code of others made is plain, short and never an error."""

import pytest

from trials.foreign import MOST_LETTERS, code_of, in_words, line_of, text_of, traceback_of
from trials.running.runner import failure_of


class Strange(type):
    """A class whose name and attributes cannot be had."""

    @property
    def __name__(cls) -> str:
        raise RuntimeError

    def __repr__(cls) -> str:
        raise RuntimeError


class Mute(Exception, metaclass=Strange):
    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class Recursive(Exception):
    def __str__(self) -> str:
        raise Recursive

    __repr__ = __str__


class Wrong(Exception):
    def __str__(self) -> str:
        return 7  # type: ignore[return-value]

    __repr__ = __str__


class Hidden(Exception):
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("not yours")

    @property
    def cause(self) -> Exception:
        raise RuntimeError("not yours either")


class Texts(str):
    __slots__ = ()

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)


class Own(Exception):
    def __str__(self) -> str:
        return Texts("own words")


HOSTILE = {"mute": Mute, "recursive": Recursive, "wrong": Wrong, "hidden": Hidden, "own": Own}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_error_that_has_no_text_is_told_by_its_type(name):
    try:
        raise HOSTILE[name]
    except Exception as raised:  # noqa: BLE001 - as user code does, with a place
        error = raised
    failure = failure_of(error)
    assert failure.kind == "error"
    for text in (failure.text, failure.details, text_of(error), code_of(error), line_of(error)):
        assert type(text) is str
    assert failure.text.startswith(f"{__name__}.{name.capitalize()}")
    assert "raise HOSTILE" in failure.details or name == "hidden"


def test_texts_stay_as_they_are_unless_they_are_too_long():
    assert text_of(ValueError("one\ntwo\n")) == "one\ntwo\n"
    assert in_words(ValueError("one")) == "ValueError: one"
    assert (
        in_words(ValueError())
        == line_of(ValueError())
        == line_of(ValueError(" \n"))
        == "ValueError"
    )
    assert line_of(ValueError("\n one\ntwo")) == "one"
    text = text_of("b" + "x" * 20_000_000 + "e")
    assert len(text) < MOST_LETTERS + 100
    assert text[0] + text[-1] == "be"
    assert "19,998,002 letters are left out" in text


def test_an_error_of_many_letters_or_notes_is_cut_and_its_traceback_too():
    long = RuntimeError("x" * 20_000_000)
    many = RuntimeError("y")
    for _ in range(1000):
        many.add_note("z" * 1000)
    for error in (long, many, ExceptionGroup("g", [long] * 10), MemoryError("x" * 20_000_000)):
        failure = failure_of(error)
        assert len(failure.text) < 3_000
        assert len(failure.details) < 21_000
        assert len(traceback_of(error)) < 21_000
    assert failure_of(many).text == "RuntimeError: y"
    assert failure_of(MemoryError("x" * 20_000_000)).kind == "out_of_memory"
