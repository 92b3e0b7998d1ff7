"""Texts for people and logs, without the passwords that URLs may have in them."""

from __future__ import annotations

import re

_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY = re.compile(r"(https?://[^\s?'\"]+)\?[^\s'\"]+")


def without_secrets(text: str) -> str:
    """A text in which URLs have neither user nor password nor query."""
    return _QUERY.sub(r"\1?...", _USER_INFO.sub("", text))
