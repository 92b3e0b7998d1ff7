"""The file system of a database file, as far as Linux names it.

SQLite's write-ahead log shares memory between its users, which is only possible on one machine, and
its rollback journal needs locks that all machines see (https://sqlite.org/useovernet.html).
"""

import re
from dataclasses import dataclass
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
"""What is mounted, and where (proc_pid_mountinfo(5)); absent on other systems than Linux."""

NETWORKED = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "afs", "orangefs")
) | {"9p", "virtiofs", "glusterfs"}
"""File systems that other machines may write to at the same time."""
ON_THIS_MACHINE = frozenset(
    ("mergerfs", "bindfs", "gocryptfs", "cryfs", "encfs", "ntfs", "ntfs-3g", "fuse-overlayfs")
)
"""File systems in user space (FUSE) whose files are on a disk of this machine."""
WITH_LOCKS = frozenset(("ceph", "ceph-fuse", "glusterfs", "gpfs", "juicefs", "moosefs", "mfs"))
"""File systems in user space whose locks hold on all machines; the locks of others, such as sshfs
and those on object stores, hold only on their own."""
_LOCAL_LOCKS = {"nolock", "nobrl", "local_lock=all", "local_lock=posix", "localflock", "noflock"}
"""Options of mounts of NFS, SMB and Lustre with which other machines do not see a lock."""


@dataclass(frozen=True)
class FileSystem:
    """A mounted file system."""

    kind: str  # as Linux names it, such as ext4, nfs4 or fuse.sshfs
    options: frozenset[str] = frozenset()

    @property
    def is_networked(self) -> bool:
        """True if other machines may write to it; also of one in user space that is not known."""
        kind, _, in_user_space = self.kind.partition(".")
        if kind == "fuse":
            return in_user_space not in ON_THIS_MACHINE
        return kind in NETWORKED

    @property
    def has_locks(self) -> bool:
        """True if all who use it see each other's locks."""
        kind, _, in_user_space = self.kind.partition(".")
        if self.options & _LOCAL_LOCKS or (kind == "lustre" and "flock" not in self.options):
            return False
        return kind != "fuse" or in_user_space in ON_THIS_MACHINE | WITH_LOCKS


LOCAL = FileSystem("local")


def file_system_of(file: Path) -> FileSystem:
    """The file system that holds a file or will; `LOCAL` where the system does not say."""
    try:
        mounts = MOUNTS.read_text("utf-8", errors="surrogateescape")
    except OSError:
        return LOCAL
    return holding(file.resolve(), mounts)


def holding(file: Path, mounts: str) -> FileSystem:
    """The file system with the longest mount point above a path without links, by the text of
    `MOUNTS`; of several at one place the last, which covers the others."""
    found, depth = LOCAL, 0
    for line in mounts.splitlines():
        mounted, _, source = line.partition(" - ")
        place, options = mounted.split()[4:6]
        point = Path(re.sub(r"\\(\d{3})", lambda escape: chr(int(escape[1], 8)), place))
        if len(point.parts) >= depth and file.is_relative_to(point):
            kind, _, more = source.split(" ")[:3]
            depth = len(point.parts)
            found = FileSystem(kind, frozenset(f"{options},{more}".split(",")))
    return found
