"""Programs that tests run to their end."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HPSEARCH = str(Path(sys.executable).with_name("hpsearch"))
"""The program as it is installed."""


def run_program(words: str | Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and keep what it writes to both streams. Unless `check` is given,
    its exit code is for the test to judge."""
    return subprocess.run(words, capture_output=True, text=True, **{"check": False, **more})
