"""Names from outside are one component of a path, or refused."""

import pytest

from trials.checkpoints.disk.names import UnsafeName, below, component, relative

OUTSIDE = ["", ".", "..", "/", "/etc", "a/", "a//b", "../a", "a/../b", "a\0b", "\ud800", 7, None]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leads_anywhere_else_is_refused(name):
    for read in (component, relative):
        with pytest.raises(UnsafeName):
            read(name)


def test_any_other_name_stays_as_it_is():
    for name in ("a", "...", ".hidden", "caf\udce9\nand more", "a\\b", "-rf", "~"):
        assert component(name) == relative(name) == name
    assert relative("a/b/c") == "a/b/c"
    with pytest.raises(UnsafeName):
        component("a/b")


def test_a_file_below_a_folder_is_not_reached_through_a_link(tmp_path):
    (tmp_path / "outside").mkdir()
    folder = tmp_path / "link to the folder"
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    folder.symlink_to("folder")
    (folder / "inner" / "link").symlink_to(tmp_path / "outside")
    assert below(folder, "inner/file") == folder / "inner" / "file"
    assert below(folder, "inner/link") == folder / "inner" / "link"
    with pytest.raises(UnsafeName, match="through a link"):
        below(folder, "inner/link/file")
