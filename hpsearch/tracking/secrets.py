"""Texts for people and logs, without the passwords that URLs and the environment may have."""

from __future__ import annotations

import os
import re

LONGEST = 500
"""Characters of a text in short."""

_USER_INFO = re.compile(r"(?<=://)(?:[^/\s]+|[^/@:\s]*:(?!\d+/)[^@\s]+)@")
"""The second kind has a slash in its password."""
_QUERY = re.compile(r"(\w://[^\s?'\"]+)\?[^\s'\"]+")
_SECRET = re.compile(r"(KEY|TOKEN|PASSWORD|SECRET)$")
"""The name of a variable whose value is secret."""
_SHORTEST = 8
"""Characters of a value that is taken out: shorter ones are words of other texts."""


def without_secrets(text: str) -> str:
    """A text in which URLs have neither user nor password nor query, and nothing is the value of a
    secret variable of the environment."""
    for name, value in os.environ.items():
        secret = value.strip()
        if len(secret) >= _SHORTEST and _SECRET.search(name):
            text = text.replace(secret, "...")
    return _QUERY.sub(r"\1?...", _USER_INFO.sub("", text))


def in_short(text: str) -> str:
    """The beginning of a text, on one line and without secrets."""
    begin = without_secrets(text[: 20 * LONGEST])  # one that is cut in two is shown by neither cut
    return " ".join(begin.split())[:LONGEST]
