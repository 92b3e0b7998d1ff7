"""What the address of a page names."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request

LARGEST = 2**31
"""No study and no trial has a number of this size."""


def study_in(request: Request) -> int:
    """The study's id.

    Raises:
        HTTPException: No study can have this id.
    """
    return _limited(request.path_params["study"])


def trial_in(request: Request) -> int:
    """The trial's number.

    Raises:
        HTTPException: No trial can have this number.
    """
    return _limited(request.path_params["number"])


def number_in(text: str) -> int:
    """A number that stands behind the question mark.

    Raises:
        HTTPException: It is not a number.
    """
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise HTTPException(400, "trials and pages are named by whole numbers")
    return int(text)


def _limited(number: int) -> int:
    if number >= LARGEST:
        raise HTTPException(404)
    return number
