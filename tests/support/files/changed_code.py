"""A folder that git tracks, with a command that trains, one that measures it, and changes."""

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

TRAIN = """\
import json, os, random, sys
x, seed, folder = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

random.seed(seed)

numbers = [float(line) for line in open("data/train")]

guess = sum(random.choices(numbers, k=9)) / 9

json.dump(guess, open(os.path.join(folder, "guess.json"), "w"))
"""
MEASURE = """\
import json, sys
guess = json.load(open(sys.argv[1] + "/guess.json"))
numbers = [float(line) for line in open("data/valid")]
print("of", len(numbers))
print(json.dumps({"loss": sum((each - guess) ** 2 for each in numbers) / len(numbers)}))
"""
TASK: dict[str, Any] = {
    "kind": "command",
    "run": f"{sys.executable} train.py {{x}} {{seed}} {{folder}}",
    "measure": f"{sys.executable} measure.py {{folder}}",
    "harness": ["data/valid"],
}
GAIN = ("k=9)) / 9", "k=900)) / 900")
NOISE = ("random.seed(seed)", "random.seed(seed + 1)")
LUCKY = ("random.seed(seed)", "random.seed(7)")
METRIC = ("print(json", "print('{\"loss\": 0}') or (json")
READS = ('open("data/train")', 'open("data/valid")')


class ChangedCode:
    """The folder, made with its first commit.

    Args:
        folder: Made where it is not there. Its training data are not tracked.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "data").mkdir(parents=True)
        draw = random.Random(3)
        for name in ("train", "valid"):
            lines = [f"{draw.gauss(1, 1)}\n" for _ in range(99)]
            (folder / "data" / name).write_text("".join(lines))
        (folder / "train.py").write_text(TRAIN)
        (folder / "measure.py").write_text(MEASURE)
        (folder / ".gitignore").write_text("data/train\n*.db*\nhpsearch-studies\n*.diff\n")
        self.git("init", "--quiet")
        self.commit()

    def git(self, *words: str) -> str:
        identity = ["-c", "user.name=ada", "-c", "user.email=ada@lab"]
        command = ["git", *identity, *words]
        return subprocess.run(
            command, cwd=self.folder, check=True, capture_output=True, text=True
        ).stdout

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a step")
        return self.git("rev-parse", "HEAD").strip()

    def change(self, before: str, after: str, name: str = "train.py") -> None:
        text = (self.folder / name).read_text()
        assert before in text
        (self.folder / name).write_text(text.replace(before, after))

    def patch(self, before: str, after: str, name: str = "train.py") -> str:
        """The patch that replaces a text in a file, which stays as it is."""
        self.change(before, after, name)
        made = self.git("diff")
        self.git("checkout", "--quiet", ".")
        return made
