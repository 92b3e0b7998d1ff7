"""What a referee of changed code keeps, beside greedy keep-if-better and a test by an oracle.

    python benchmarks/referee.py [--runs 40] [--campaigns 200] [--real NULLS]
                                 [--programs language,table] [--quick] [--json FILE]

Two small trainings, of a language model on the pages of `docs/` and of a table (scikit-learn's
digits), run with as many seeds as `--runs` as they are and with each of three changes that are
better. Campaigns then draw their runs from these pools, the two sides of a pair apart.

- *nulls*: 300 changes that change nothing but the luck of each run. Greedy keeps a change whose one
  run is better than the best so far.
- *gains*: 100 changes of which ten are of a kind that is better. The oracle knows the gain, and
  takes the fewest pairs for which a paired t-test at the level of `level_of` finds it eight times
  in ten.

With `--real`, a driver tests so many nulls, every tenth of them a comment, with the gains and three
cheats among them, as patches of a command in a git repository. Slots take `s a run`; the program
with its measure takes `s alone`.
"""

import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir, closing, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from runpy import run_path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import stats
from sklearn.datasets import load_digits

from hpsearch.domain.facts import CodeVerdict, RequestKind
from hpsearch.errors import UserError
from hpsearch.running.study_run.requests import send
from hpsearch.running.study_run.revision import revision_of_study
from hpsearch.search.ranking.verdicts.referee import level_of, ruling
from hpsearch.store.store import Store
from tables import arguments, show

DOCS = Path(__file__).parents[1] / "docs"
CHANGES = {
    "language": ("hidden = 64", "steps = 115", "rate *= 1.3"),
    "table": ("batch = 48", "steps = 150", "steps = 300"),
}
CHEATS = {
    "measure.py": "print('{\"loss\": 0.0}')",
    "step_reads.py": "x, y = np.load('data/va' + 'lid.npz').values()",
    "step_seed.py": "draw = np.random.default_rng(7)",
}
NULLS = ("draw.random(", "#")  # how they begin
TRAIN = """\
import sys
from pathlib import Path
import numpy as np
rate, seed, folder = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
hidden, steps, batch, draw = 32, 100, 32, np.random.default_rng(seed)
x, y = np.load("data/train.npz").values()
for step in sorted(Path().glob("step_*.py")):
    exec(step.read_text())
first = draw.normal(0, x.shape[1] ** -0.5, (x.shape[1], hidden))
second = draw.normal(0, hidden**-0.5, (hidden, y.max() + 1))
for _ in range(steps):
    rows = draw.integers(len(x), size=batch)
    inside = np.maximum(x[rows] @ first, 0)
    chances = np.exp(inside @ second)
    chances /= chances.sum(1, keepdims=True)
    chances[np.arange(batch), y[rows]] -= 1
    back = (chances @ second.T) * (inside > 0)
    first -= rate / batch * x[rows].T @ back
    second -= rate / batch * inside.T @ chances
np.savez(f"{folder}/weights.npz", first, second)
"""
MEASURE = """\
import json, sys
import numpy as np
first, second = np.load(f"{sys.argv[1]}/weights.npz").values()
x, y = np.load("data/valid.npz").values()
scores = np.maximum(x @ first, 0) @ second
losses = np.log(np.exp(scores).sum(1)) - scores[np.arange(len(y)), y]
print(json.dumps({"loss": losses.mean()}))
"""
PYTHON, RATE = sys.executable, "0.5"
STUDY = f"""\
study: changes
task: {{kind: command, run: '{PYTHON} train.py {{rate}} {{seed}} {{folder}}',
  measure: '{PYTHON} measure.py {{folder}}', harness: [data/valid.npz]}}
space: {{rate: {{type: float, low: 0.1, high: 1.0}}}}
enqueue: [{{rate: {RATE}}}]
objective: {{metric: loss, direction: minimize}}
budget: {{trials: 1, per_trial: {{epochs: 1}}}}
resources: {{workers: 2}}
"""
COMMAND = (PYTHON, "-c", "from hpsearch.cli.main import main; main()")
Pool = list[float]


def written(name: str, folder: Path) -> None:
    """Write a program and its data: `x` (rows, features), and `y`, one class a row."""
    x, y = load_digits(return_X_y=True)
    x, training = x / 16, 900
    if name == "language":  # a letter by the four before it
        text = "".join(path.read_text() for path in sorted(DOCS.glob("*.md")))[:34_000].lower()
        letters = np.unique(list(text), return_inverse=True)[1]
        windows = np.lib.stride_tricks.sliding_window_view(letters, 5)
        windows = np.random.default_rng(0).permutation(windows)
        x = np.eye(letters.max() + 1, dtype=np.uint8)[windows[:, :-1]].reshape(len(windows), -1)
        y, training = windows[:, -1], 30_000
    (folder / "data").mkdir(parents=True)
    np.savez(folder / "data/train.npz", x=x[:training], y=y[:training])
    np.savez(folder / "data/valid.npz", x=x[training:], y=y[training:])
    for file, text in {"train.py": TRAIN, "measure.py": MEASURE, "study.yaml": STUDY}.items():
        (folder / file).write_text(text)


def trained(folder: Path, seed: int, change: str = "") -> float:
    """The loss on held-out data."""
    (folder / "step_change.py").write_text(change)
    with chdir(folder), redirect_stdout(StringIO()) as said:
        for program, *words in (("train.py", RATE, str(seed), "."), ("measure.py", ".")):
            sys.argv[1:] = words
            run_path(program)
    return float(json.loads(said.getvalue())["loss"])


def campaign(base: Pool, sides: list[Pool], draw: random.Random) -> list[tuple[bool, int, float]]:
    """Of each change: whether it is kept, its pairs, and its level."""
    found, kept = [], 0
    for number, pool in enumerate(sides, 1):
        before, changed = [], []
        level, verdict = level_of(number, kept), CodeVerdict.OPEN
        while verdict is CodeVerdict.OPEN:
            before.append(draw.choice(base))
            changed.append(draw.choice(pool))
            verdict = ruling(changed, before, 1.0, level).verdict
        kept += verdict is CodeVerdict.KEEP
        found.append((verdict is CodeVerdict.KEEP, len(before), level))
    return found


def greedy(values: Pool) -> list[int]:
    """The places, from 1, of runs that are better than all before, the one of the base included."""
    return [at for at in range(1, len(values)) if values[at] < min(values[:at])]


@cache
def oracle(effect: float, level: float) -> int:
    """The pairs with which a t-test finds an effect, in deviations, eight times in ten."""
    pairs = 2
    while True:
        beyond = stats.t.ppf(1 - level, pairs - 1)
        if stats.nct.sf(beyond, pairs - 1, effect * math.sqrt(pairs)) >= 0.8:
            return pairs
        pairs += 1


def real(name: str, folder: Path, nulls: int) -> dict[str, Any]:
    """The figures of a campaign that a driver tests. What became of cheats and gains is printed."""
    alone = [_timed(folder, PYTHON, "train.py", RATE, str(seed), ".") for seed in range(9)]
    alone += [_timed(folder, PYTHON, "measure.py", ".") for _ in range(9)]
    for words in ("init -q", "add *.py", "-c user.name=a -c user.email=a@b commit -qm begin"):
        _git(folder, *words.split())
    _timed(folder, *COMMAND, "run", "study.yaml")
    with closing(Store.open(f"sqlite:///{folder}/hpsearch.db")) as store:
        for file, text in _patches(name, nulls):
            (folder / file).write_text(f"{text}\n")
            _git(folder, "add", file)
            patch = _git(folder, "diff", "--cached")
            _git(folder, "reset", "-q", "--hard")
            try:
                content = revision_of_study(store, "changes", text, patch=patch)
                send(store, "changes", RequestKind.REVISE, content, "a script")
            except UserError as refused:
                print(f"{text}: {refused.message}")
        wall_s = _timed(folder, *COMMAND, "resume", "changes")
        history = store.load("changes")
    found = [each for each in history.revisions if each.why.startswith(NULLS)]
    for each in history.revisions:
        if each not in found:
            print(f"{each.why}: {each.verdict}, {each.reason}")
    tests = [(trial, run) for trial in history.trials if (run := trial.revision_run)]
    values = [next(trial.value or math.inf for trial, run in tests if not run.is_changed)]
    firsts = [(trial, run) for trial, run in tests if run.is_changed and run.pair == 0]
    values += [trial.value or math.inf for trial, _ in firsts]
    by_greed = [history.revisions[firsts[at - 1][1].revision - 1] for at in greedy(values)]
    return {
        "training": name,
        "nulls": len(found),
        "kept": sum(each.verdict is CodeVerdict.KEEP for each in found),
        "greedy keeps": sum(each in found for each in by_greed),
        "pairs a change": fmean(each.pairs for each in history.revisions),
        "runs": len(tests),
        "s a run": 2 * wall_s / len(tests),
        "s alone": 2 * fmean(alone),
    }


def _patches(name: str, nulls: int) -> Iterator[tuple[str, str]]:
    """Of each patch the file that it writes, and its text: cheats, and gains among nulls."""
    yield from CHEATS.items()
    for number in range(nulls):
        if number % (nulls // 3) == nulls // 6:
            yield f"step_{number:03}_.py", CHANGES[name][3 * number // nulls]
        yield f"step_{number:03}.py", f"draw.random({number})" if number % 10 else "# nothing"


def _git(folder: Path, *words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=folder, text=True)


def _timed(folder: Path, *words: str) -> float:
    began = time.monotonic()
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def main() -> None:
    quick, programs = {"runs": 4, "campaigns": 2}, ["language", "table"]
    options = arguments(__doc__, quick, runs=40, campaigns=200, real=0, programs=programs)
    tested, nulls, gains = [], [], []
    with TemporaryDirectory() as place:
        for name in options.programs:
            folder = Path(place, name)
            written(name, folder)
            if options.real:
                tested.append(real(name, folder, options.real))
                continue
            base = [trained(folder, seed) for seed in range(options.runs)]
            luck = random.Random(0)
            kept = [campaign(base, [base] * 300, luck) for _ in range(options.campaigns)]
            greeds = [greedy(luck.choices(base, k=301)) for _ in range(options.campaigns)]
            nulls.append(
                {
                    "training": name,
                    "kept of 300": fmean(sum(keep for keep, *_ in each) for each in kept),
                    "campaigns that keep any": fmean(
                        any(keep for keep, *_ in each) for each in kept
                    ),
                    "pairs a change": fmean(pairs for each in kept for _, pairs, _ in each),
                    "greedy keeps": fmean(map(len, greeds)),
                }
            )
            for change in CHANGES[name]:
                others = range(options.runs, 2 * options.runs)
                better = [trained(folder, seed, change) for seed in others]
                noise = math.hypot(stdev(base), stdev(better))
                effect = round((fmean(base) - fmean(better)) / noise, 2)
                sides = ([base] * 9 + [better]) * 10
                rounds = [
                    campaign(base, sides, luck)[9::10] for _ in range(options.campaigns // 10 + 1)
                ]
                chosen = [each for found in rounds for each in found]
                knows = [
                    oracle(effect, float(f"{level:.1g}")) for *_, level in chosen if effect > 0.3
                ]
                gains.append(
                    {
                        "training": name,
                        "change": change,
                        "gain": effect,
                        "found": fmean(keep for keep, *_ in chosen),
                        "pairs": fmean(pairs for _, pairs, _ in chosen),
                        "oracle's pairs": fmean(knows or [math.nan]),
                    }
                )
    if tested:
        show("tested by a driver", tested, options.json)
        return
    show("nulls", nulls, options.json)
    show("gains (in deviations of a pair's difference)", gains, options.json)


if __name__ == "__main__":
    main()
