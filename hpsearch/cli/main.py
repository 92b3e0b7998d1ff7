"""The command line: the one place where errors become exit codes."""

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from hpsearch.cli import interrupts, streams
from hpsearch.cli.commands.app import app
from hpsearch.cli.output import note, suggest_for
from hpsearch.errors import ClusterLost, HpsearchError, UserError
from hpsearch.running.executors.cluster import ray_thread
from trials.running import surroundings

# isort: split
# Importing them adds their commands to the program, in the order of its help.
from hpsearch.cli.commands import search

# isort: split
from hpsearch.cli.commands import results

# isort: split
from hpsearch.cli.commands import maintenance

# isort: split
from hpsearch.cli.commands import plugged

PANELS = (search, results, maintenance, plugged)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: with 0 if done, 1 for a bug; `hpsearch.errors` has the others."""
    # A process that ends need not look for garbage, which takes as long as reading a table.
    atexit.register(gc.freeze)
    with streams.guarded(), interrupts.handled():
        code = _exit_code(arguments)
        if ray_thread.any_is_stuck() or _has_left_a_tracker():
            with suppress(streams.ReaderGone, UserError):
                sys.stdout.flush()
            # An orderly exit would wait for threads of Ray or a tracker, or crash on them.
            os._exit(code if isinstance(code, int) else 1)
        sys.exit(code)


def _has_left_a_tracker() -> bool:
    senders = sys.modules.get("hpsearch.running.tracking.senders")  # none, where it is not imported
    return senders is not None and senders.any_is_stuck()


def _exit_code(arguments: Sequence[str] | None) -> int | str | None:
    try:
        return _run(arguments)
    except streams.ReaderGone:
        return streams.READER_GONE
    except KeyboardInterrupt:
        return interrupts.EXIT_CODE
    except ClusterLost as error:
        note(f"hpsearch: {error}")
        with suppress(streams.ReaderGone, UserError):
            sys.stdout.flush()
        os._exit(error.exit_code)  # as above: threads of ours wait for the head, too
    except HpsearchError as error:
        from hpsearch.cli.opening import with_queue  # others need no database

        note(f"hpsearch: {with_queue(error)}")
        return error.exit_code


def _run(arguments: Sequence[str] | None) -> int | str | None:
    suggest_for()
    surroundings.settle()
    try:
        app(arguments, prog_name="hpsearch")
    except SystemExit as ended:
        sys.stdout.flush()
        return ended.code
    return 0
