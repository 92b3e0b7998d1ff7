"""Texts for people and logs, without the passwords in URLs and the environment."""

import os
import re

LONGEST = 500  # characters of a text in short

_USER_INFO = re.compile(r"(?<=://)[^/\s]+@")
_QUERY = re.compile(r"(\w://[^\s?'\"]+)\?[^\s'\"]+")
_SECRET = re.compile(r"(KEY|TOKEN|PASSWORD|SECRET)$")
"""The name of a variable whose value is secret."""
_SHORTEST = 8  # characters of a value that is taken out: shorter ones are words of other texts


def without_passwords(text: str) -> str:
    """A text in which URLs have neither user nor password nor query."""
    return _QUERY.sub(r"\1?...", _USER_INFO.sub("", text))


def without_secrets(text: str) -> str:
    """A text without passwords in URLs, and without values of secret environment variables."""
    values = [value.strip() for name, value in os.environ.items() if _SECRET.search(name)]
    for value in sorted(values, key=len, reverse=True):  # one may be the beginning of another
        if len(value) >= _SHORTEST:
            text = text.replace(value, "...")
    return without_passwords(text)


def in_short(text: str) -> str:
    """The beginning of a text, on one line and without secrets."""
    begin = without_secrets(text[: 20 * LONGEST])  # one that is cut in two is shown by neither cut
    return " ".join(begin.split())[:LONGEST]
