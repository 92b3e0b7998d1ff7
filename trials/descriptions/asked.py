"""No task at all: whoever asks for a trial trains it, in code that the study does not know."""

from __future__ import annotations

from trials.descriptions.description import TaskDescription

ASK = TaskDescription(kind="ask", fields={}, settings=None, metrics=None)
"""The kind of a study whose trials are asked for in Python."""
