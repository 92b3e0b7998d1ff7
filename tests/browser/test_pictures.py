"""The pictures of the documentation, by the one command that makes them."""

import sys
from pathlib import Path

import pytest
from PIL import Image

from support.running.programs import run_program

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "pictures.py"


@pytest.mark.thorough
def test_one_command_draws_the_pictures_of_the_documentation(chromium, tmp_path):
    ended = run_program([sys.executable, PROGRAM, "--quick", "--out", tmp_path, "--keep", tmp_path])
    assert ended.returncode == 0, ended.stderr
    for name in ("dashboard.png", "report.png"):
        with Image.open(tmp_path / name) as picture:
            assert len(picture.convert("RGB").getcolors(1 << 24)) > 20, "it is empty"
