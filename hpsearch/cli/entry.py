"""The program `hpsearch` from its first line: signals are handled while it is imported, too."""

import sys

from hpsearch.running.executors.cluster import callers_folder

callers_folder.look_in_last()

from hpsearch.cli import interrupts  # noqa: E402 - not from the caller's folder


def main() -> None:
    try:
        with interrupts.handled():
            from hpsearch.cli.main import main as run

            run()
    except KeyboardInterrupt:
        sys.exit(interrupts.EXIT_CODE)
    finally:
        interrupts.end_at_once()
