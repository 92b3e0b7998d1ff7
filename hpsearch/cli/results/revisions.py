"""`hpsearch show NAME --revisions`: the changes of a command's code, and the patch of one."""

import sys

from hpsearch.cli import output
from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import TreeFormat, note, show, terminal_width
from hpsearch.errors import UserError
from hpsearch.store.reading.revisions import tested
from hpsearch.views.terminal import tables


def print_revisions(name: str, format: TreeFormat, storage: str) -> None:
    """Print what was tested, by whom, why, at what cost, and the verdict."""
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        found = tested(connection, study.id)
    if format is not TreeFormat.TABLE:
        revisions = [each.as_plain() for each in found]
        output.emit_tree({"study": study.name, "revisions": revisions}, format)
    elif found:
        show(tables.revisions(found, terminal_width()))
        note(f"each is a patch on the kept ones before it: hpsearch show {name} --patch N")
    else:
        note(f"study {name} has tested no change of code: hpsearch enqueue {name} --patch FILE")


def print_patch(name: str, number: int, storage: str) -> None:
    """Print a patch as it was tested. Raises UserError if there is none with this number."""
    with reading(storage) as connection:
        found = tested(connection, chosen_study(connection, name).id)
    if number > len(found):
        raise UserError(f"study {name} has no revision {number}", f"it has {len(found)}")
    sys.stdout.write(found[number - 1].revision.patch)
