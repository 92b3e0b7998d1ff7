"""Logs of bounded size."""

import subprocess
from pathlib import Path

from trials.checkpoints.disk.log_file import EARLIER, MOST_BYTES, LogFile


def test_what_other_processes_print_stays_bounded_too(tmp_path):
    log = LogFile(tmp_path / "logs" / "log")
    program = f"while read line; do head -c {MOST_BYTES} /dev/zero; echo $line; echo >&2; done"
    talker = subprocess.Popen(
        ["sh", "-c", program],
        stdin=subprocess.PIPE,
        stdout=log.descriptor,
        stderr=subprocess.PIPE,
        text=True,
    )
    with talker:
        assert talker.stdin is not None
        assert talker.stderr is not None
        for word in ("one", "two", "three"):
            talker.stdin.write(f"{word}\n")
            talker.stdin.flush()
            talker.stderr.readline()
            log.keep_small()
            assert log.size < 200, "it goes on in the same file"
    earlier = Path(f"{log.path}{EARLIER}").read_bytes()
    assert earlier.endswith(b"three\n")
    assert len(earlier) <= MOST_BYTES + 1000
    assert log.path.read_text().endswith("goes on; what was before is in log.earlier\n")
    log.close()
    log.close()


def test_of_very_much_the_last_part_is_kept(tmp_path):
    log = LogFile(tmp_path / "log")
    log.write(b"first" + b"x" * 3 * MOST_BYTES + b"last")
    log.keep_small()
    earlier = Path(f"{log.path}{EARLIER}").read_bytes()
    assert len(earlier) == MOST_BYTES
    assert earlier.endswith(b"last")
    log.close()


def test_a_note_begins_a_line_and_has_the_time(tmp_path):
    log = LogFile(tmp_path / "log")
    log.write(b" 50%\r100%")
    log.note("ended\ud800")
    log.close()
    first, second = (tmp_path / "log").read_bytes().split(b"\n")[:2]
    assert first == b" 50%\r100%"
    assert second.startswith(b"[hpsearch] 20")
    assert second.endswith(b" ended\\ud800")
