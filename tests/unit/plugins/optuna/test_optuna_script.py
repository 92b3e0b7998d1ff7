"""Scripts that search by Optuna, run up to their search, of whatever shape."""

from pathlib import Path
from typing import Any

import pytest
from optuna.trial import FixedTrial

from hpsearch.errors import SpecError
from hpsearch.plugins.optuna.objective import directions_in, run_to_search
from hpsearch.running.loading import inspect, load
from hpsearch.running.study_run.workers import refuse_contradictions
from hpsearch.study_file.reading import parse
from trials.contract import TaskError

HEAD = "import optuna\nfrom optuna import create_study\n"
F = "def f(trial, scale=2):\n    return scale * trial.suggest_float('x', 0, 1)\n"
SHAPES = {
    "a lambda over data": "two = [2]\ncreate_study().optimize(lambda t: f(t, two[0]), n_trials=3)",
    "a partial": "from functools import partial\ncreate_study().optimize(partial(f, scale=2))",
    "an object": "class O:\n    def __call__(self, t): return f(t)\ncreate_study().optimize(O())",
    "the main guard": "if __name__ == '__main__':\n    scale = 2\n"
    "    create_study().optimize(lambda t: f(t, scale))",
    "a function": "def main():\n    s = optuna.study.create_study()\n    s.optimize(f)\nmain()",
    "a name by import": "from optuna import Study\nStudy.optimize(create_study(), f)",
    "a storage": "s = optuna.storages.RDBStorage('sqlite:///theirs.db', heartbeat_interval=9)\n"
    "create_study(study_name='s', storage=s, load_if_exists=True)\n"
    "optuna.load_study(study_name='s', storage='sqlite:///theirs.db').optimize(f)",
    "a journal": "from optuna.storages import JournalStorage\n"
    "from optuna.storages.journal import JournalFileBackend\n"
    "create_study(storage=JournalStorage(JournalFileBackend('theirs.log'))).optimize(f)",
    "a deleted study": "optuna.delete_study(study_name='s', storage='sqlite:///theirs.db')\n"
    "create_study(study_name='s', storage='sqlite:///theirs.db').optimize(f)",
    "an except of everything": "try:\n    create_study().optimize(f)\nexcept:\n    print('ended')",
    "a thread": "from threading import Thread\n"
    "t = Thread(target=create_study().optimize, args=(f,))\nt.start(); t.join()",
    "a search before another": "create_study().optimize(f)\ncreate_study().optimize(None)",
}


def script(folder: Path, rest: str, head: str = HEAD + F) -> Path:
    path = folder / f"script_{abs(hash((folder, rest)))}.py"
    path.write_text(head + rest + "\n")
    return path


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_search_of_a_script_is_found_and_nothing_is_stored(shape, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = script(tmp_path, SHAPES[shape])
    search = run_to_search(file, {}).search
    assert search is not None
    assert search.objective(FixedTrial({"x": 0.25})) == 0.5
    assert search.directions == ("minimize",)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("study = create_study()\nstudy.tell(study.ask(), 1.0)", "docs/ask-and-tell.md"),
        ("optuna.load_study(study_name='s', storage='sqlite:///their.db')", "loads the study 's'"),
        ("print('nothing')", "ends without a call of study.optimize"),
        ("1 / 0", "fails before study.optimize: ZeroDivisionError"),
        ("import sys; sys.exit('no data')", "calls sys.exit"),
        (
            "import argparse\np = argparse.ArgumentParser()\n"
            "p.add_argument('--data', required=True)\np.parse_args()",
            "name them after it, or under task.args",
        ),
        (
            "create_study(study_name='s')\nclass Steps(optuna.Study): pass\n"
            "Steps('s', None).optimize(f)",
            "leaves its search to",
        ),
        ("import subprocess\nsubprocess.run(['true'])", "ends without a call"),
    ],
)
def test_what_cannot_be_carried_over_is_refused_by_name(rest, says, tmp_path):
    with pytest.raises(TaskError, match=says):
        run_to_search(script(tmp_path, rest), {})


ARGUMENTS = """
import argparse
from pathlib import Path
parser = argparse.ArgumentParser()
parser.add_argument("data", type=Path)
parser.add_argument("--scale", type=float, default=1.0)
parser.add_argument("--up", action="store_true")
parser.add_argument("--same", default="same")
given = parser.parse_args()
assert isinstance(given.data, Path)
direction = "maximize" if given.up else "minimize"
create_study(direction=direction).optimize(lambda trial: f(trial, given.scale))
"""


def test_the_arguments_of_a_script_go_with_its_task(tmp_path):
    file = script(tmp_path, ARGUMENTS)
    arguments = run_to_search(file, {}, "a.csv", "--scale", "2", "--up").arguments
    assert arguments == {"data": "a.csv", "scale": 2.0, "up": True}
    again = run_to_search(file, arguments).search
    assert again is not None
    assert again.objective(FixedTrial({"x": 0.25})) == 0.5
    assert again.directions == ("maximize",)


def test_optuna_is_as_it_was_once_the_script_has_run(tmp_path):
    rest = "make = create_study\ncreate_study().optimize(f)"
    search = run_to_search(script(tmp_path, rest), {}).search
    assert search is not None
    storage = f"sqlite:///{tmp_path / 'ours.db'}"
    inner = vars(search.module)["make"](storage=storage)  # as a nested search in an objective
    inner.optimize(search.objective, n_trials=2)
    assert len(inner.trials) == 2


@pytest.mark.parametrize(
    ("text", "directions"),
    [
        ("create_study()", ("minimize",)),
        ("optuna.create_study(direction='maximize')", ("maximize",)),
        ("create_study(directions=('maximize', 'minimize'))", ("maximize", "minimize")),
        ("create_study(direction=words[0])", None),
        ("create_study(**given)", None),
        ("create_study()\ncreate_study(direction='maximize')", None),
        ("print()", None),
        ("create_study()\ndef f(t):\n    create_study(direction='maximize')", ("minimize",)),
    ],
)
def test_directions_are_read_where_they_are_constants(text, directions):
    assert directions_in(text, "f") == directions


GUARDED = "if __name__ == '__main__':\n    create_study(direction='maximize').optimize(f)"


@pytest.mark.parametrize(
    ("rest", "name"),
    [
        (GUARDED, "f"),
        (GUARDED, "__main__"),
        ("up = 'maximize'\ncreate_study(direction=up).optimize(f)", "f"),
        ("up = 'maximize'\ncreate_study(direction=up).optimize(f)", "__main__"),
    ],
)
def test_a_study_file_that_says_the_other_direction_is_refused(rest, name, tmp_path):
    file = script(tmp_path, rest)

    def checked(objective: Any) -> None:
        text = (
            f"study: s\ntask: {{kind: '{file.stem}:{name}', library: optuna}}\n"
            f"objective: {objective}\nbudget: {{trials: 3, per_trial: {{steps: 1}}}}\n"
        )
        refuse_contradictions(parse(text, base=tmp_path, inspect=inspect), "study.yaml")

    checked("{metric: value, direction: maximize}")
    with pytest.raises(SpecError, match=f"is minimize here, and maximize in {file.stem}"):
        checked("{metric: value, direction: minimize}")
    both = "[{metric: a, direction: maximize}, {metric: b, direction: minimize}]"
    with pytest.raises(SpecError, match="is maximize, minimize here, and maximize in"):
        checked(both)


def test_a_script_of_another_library_is_refused(tmp_path):
    file = script(tmp_path, "")
    with pytest.raises(TaskError, match="from hpsearch import tune"):
        _ = load({"kind": f"{file.stem}:__main__", "library": "ray_tune"}, tmp_path).function
