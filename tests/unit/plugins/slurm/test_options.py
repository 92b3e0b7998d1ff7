"""The options of sbatch, as sbatch reads them."""

import pytest

from hpsearch.errors import UserError
from hpsearch.plugins.slurm.options import read_options


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--array=1-4"], [("array", "1-4")]),
        (["--array", "1-4"], [("array", "1-4")]),
        (["--arr", "1-4"], [("array", "1-4")]),
        (["-a1-4"], [("array", "1-4")]),
        (
            ["-a", "1-4", "-J", "-x", "--comment", "--array"],
            [("array", "1-4"), ("job-name", "-x"), ("comment", "--array")],
        ),
        (
            ["-pshort", "-HQ", "-kON", "-HN2"],
            [
                ("partition", "short"),
                ("hold", None),
                ("quiet", None),
                ("no-kill", "ON"),
                ("hold", None),
                ("nodes", "2"),
            ],
        ),
        (
            ["--exclusive", "--nice=-5", "--time="],
            [("exclusive", None), ("nice", "-5"), ("time", "")],
        ),
        (
            ["--container-image=x", "--of-a-plug-in"],
            [("container-image", "x"), ("of-a-plug-in", None)],
        ),
    ],
)
def test_options_are_read_as_sbatch_reads_them(
    words: list[str], options: list[tuple[str, str | None]]
) -> None:
    read = read_options(words)
    assert [(option.name, option.value) for option in read] == options
    if "-HQ" not in words:
        assert [word for option in read for word in option.words] == words


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nodes", "2", "other.sh"], "'other.sh' is not an option of sbatch"),
        (["--exclusive", "user"], "'user' is not an option of sbatch"),
        (["--"], "'--' is not an option of sbatch"),
        ([""], "'' is not an option of sbatch"),
        (["-Z"], "'-Z' is not an option of sbatch"),
        (["-N"], "-N needs a value"),
        (["--arr"], "--arr needs a value"),
        (["--ex", "n1"], "--ex may be each of --exclude, --exclusive, --export"),
        (["--address", "http://head:8265"], "not submitted with --address"),
        (["--wra=sleep"], "not submitted with --wrap"),
        (["-W"], "not submitted with --wait"),
        (["-h"], "not submitted with --help"),
        (["-QM", "other"], "not submitted with --clusters"),
    ],
)
def test_other_words_and_options_that_a_study_cannot_have_are_refused(
    words: list[str], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        read_options(words)
