"""How long tests wait for what must happen.

A test waits for an event, and fails when the event can no longer come. A limit in seconds is there
only to end a test that would wait forever, and is far longer than a busy machine needs.
HPSEARCH_TESTS_PATIENCE multiplies it, for a machine that is made slow on purpose.
"""

import os
import time
from collections.abc import Callable

PATIENCE_S = 600.0 * float(os.environ.get("HPSEARCH_TESTS_PATIENCE", "1"))
PATIENCE_MS = 1000.0 * PATIENCE_S
_LOOK_S = 0.01


def wait_until(happened: Callable[[], object]) -> None:
    """Return as soon as something has happened.

    Raises:
        AssertionError: It did not happen within `PATIENCE_S`.
    """
    give_up = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(_LOOK_S)
