"""A sampler or pruner that a plugin offers, until it raises: then it is left out for good.

The study keeps the reason, so that it goes on in the same way when it is resumed.
"""

import logging
from typing import Literal

from hpsearch.domain.history import History
from hpsearch.study_file.methods import Method, is_of_plugin
from trials.foreign import in_words

log = logging.getLogger("hpsearch")

INSTEAD = {
    "sampler": "parameters are drawn at random from here on",
    "pruner": "it stops no trial from here on",
}


class OfPlugin:
    """The sampler or pruner of one study."""

    def __init__(
        self, part: Literal["sampler", "pruner"], method: Method, history: History
    ) -> None:
        self._part, self._method, self._history = part, method, history
        self._mark = f"hpsearch:{part}_left_out"

    @property
    def is_left_out(self) -> bool:
        """True if it has raised in this study."""
        return self._mark in self._history.study.system_attrs

    def leave_out(self, error: Exception) -> None:
        """Say once that it has raised. Raises the error if it is no plugin's: then it is ours."""
        if not is_of_plugin(self._method):
            raise error
        why = in_words(error)
        study = self._history.study
        study.system_attrs = {**study.system_attrs, self._mark: why}
        self._history.touch_study()
        what = f"the {self._part} {self._method.kind} is left out: {why}"
        log.warning("%s - %s", what, INSTEAD[self._part])
