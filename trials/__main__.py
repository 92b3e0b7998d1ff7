"""``python -m trials SETTINGS.yaml --out DIR [--resume]``: see `trials.single`."""

import os
import sys

from trials.single import main

if __name__ == "__main__":
    code = main()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # Threads of Gloo outlive the process group. A thread that is still running when the
        # interpreter ends aborts a process that has done its work, and the launcher would report a
        # failure.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
