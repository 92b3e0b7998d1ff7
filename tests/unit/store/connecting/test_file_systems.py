"""Which file system a database is on, and what it may be trusted with."""

from pathlib import Path

import pytest

from hpsearch.errors import Unreachable
from hpsearch.store.connecting import file_systems
from hpsearch.store.connecting.file_systems import FileSystem, file_system_of, holding
from hpsearch.store.store import Store

MOUNTS = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
22 27 0:21 / /proc rw,relatime - proc proc rw
40 27 0:40 / /home rw,relatime shared:12 master:3 - autofs auto.home rw,fd=5
41 40 0:41 /export/home /home rw,relatime - nfs4 nas:/export/home rw,vers=4.2,local_lock=none
42 41 0:42 / /home/ada/local\\040disk rw - xfs /dev/sdb1 rw
43 27 0:43 / /homes rw - fuse.sshfs ada@far:/ rw,user_id=0
44 27 0:44 / /scratch rw,noatime - lustre mds@tcp:/fs rw,flock,lazystatfs
45 27 0:45 / /windows rw - cifs //nas/all rw,vers=3.0,nobrl
"""


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/hpsearch.db", "ext4"),
        ("/home/ada/hpsearch.db", "nfs4"),
        ("/home/ada/local disk/hpsearch.db", "xfs"),
        ("/homes/hpsearch.db", "fuse.sshfs"),
        ("/homestead/hpsearch.db", "ext4"),
        ("/scratch/a/b/hpsearch.db", "lustre"),
    ],
)
def test_the_longest_mount_point_counts_and_the_last_of_equal_ones(file, kind):
    assert holding(Path(file), MOUNTS).kind == kind


@pytest.mark.parametrize(
    ("kind", "options", "is_networked", "has_locks"),
    [
        ("ext4", "rw", False, True),
        ("overlay", "rw", False, True),
        ("fuseblk", "rw", False, True),
        ("fuse.mergerfs", "rw", False, True),
        ("nfs4", "rw,local_lock=none", True, True),
        ("nfs", "rw,nolock", True, False),
        ("nfs", "rw,local_lock=posix", True, False),
        ("cifs", "rw", True, True),
        ("cifs", "rw,nobrl", True, False),
        ("lustre", "rw,flock", True, True),
        ("lustre", "rw,localflock", True, False),
        ("lustre", "rw", True, False),
        ("gpfs", "rw", True, True),
        ("beegfs", "rw", True, True),
        ("fuse.glusterfs", "rw", True, True),
        ("fuse.sshfs", "rw", True, False),
        ("fuse.s3fs", "rw", True, False),
    ],
)
def test_who_sees_a_lock(kind, options, is_networked, has_locks):
    found = FileSystem(kind, frozenset(options.split(",")))
    assert (found.is_networked, found.has_locks) == (is_networked, has_locks)


def test_without_a_list_of_mounts_a_file_is_local(tmp_path, monkeypatch):
    monkeypatch.setattr(file_systems, "MOUNTS", tmp_path / "absent")
    assert not file_system_of(tmp_path / "hpsearch.db").is_networked


def test_the_mounts_of_this_machine_can_be_read(tmp_path):
    if not file_systems.MOUNTS.exists():
        pytest.skip("this system has no list of mounts")
    assert file_system_of(tmp_path / "hpsearch.db") != file_systems.LOCAL
    assert file_system_of(Path("/proc/self")).kind == "proc"


def test_a_place_without_locks_is_refused(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"1 0 0:1 / {tmp_path.resolve()} rw - fuse.sshfs ada@far:/ rw\n")
    monkeypatch.setattr(file_systems, "MOUNTS", mounts)
    with pytest.raises(Unreachable, match=r"fuse\.sshfs.*\n.*PostgreSQL"):
        Store.open(f"sqlite:///{tmp_path / 'hpsearch.db'}")
