"""Command lines of Hydra applications: their overrides, and what a multirun sweeps."""

import pytest

from hpsearch.errors import UserError
from hpsearch.study_file.starters.command_lines import found_in
from hpsearch.study_file.starters.hydra_overrides import sweep_of


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ("a.py m.lr=0.1 +t.max_epochs=3", "a.py m.lr={m.lr} +t.max_epochs={budget}"),
        ("a.py ++m.depth=2 ~m.old opt=adam", "a.py ++m.depth={m.depth} '~m.old' opt=adam"),
        ("a.py hydra.run.dir=out 'm.layers=[6,4]' m.lr=1", "a.py 'm.layers=[6,4]' m.lr={m.lr}"),
        ("a.py +seed=3 m.lr=1 d.num_workers=4", "a.py +seed={seed} m.lr={m.lr} d.num_workers=4"),
        ("a.py --multirun m.lr=1,2 m.k=3 seed=1,2", "a.py m.lr={m.lr} m.k=3 seed={seed}"),
        (
            "python -m a -m opt@m.opt=a,b hydra/launcher=joblib hydra.sweep.dir=x +t.max_steps=9",
            "python -m a opt@m.opt={opt@m.opt} +t.max_steps={budget}",
        ),
    ],
)
def test_nested_keys_are_names_and_each_trial_has_a_folder_of_its_own(line, run):
    found = found_in(line, {})
    assert found.run == f"{run} hydra.run.dir={{folder}}"
    assert "resumes: false" in found.as_names()["report"]


def test_an_application_is_known_by_the_imports_of_its_script(tmp_path):
    (tmp_path / "a.py").write_text("import os\nfrom hydra import main\n")
    assert found_in("python a.py m.lr=0.1", {}, tmp_path).is_hydra
    (tmp_path / "a.py").write_text("# not of hydra\nimport hydration\n")
    found = found_in("python a.py m.lr=0.1", {}, tmp_path)
    assert found.run == "python a.py m.lr={m_lr}"


SWEEPS = {
    "adam,sgd": {"type": "categorical", "choices": ["adam", "sgd"]},
    "choice(1e-4, 0.001)": {"type": "categorical", "choices": [1e-4, 1e-3]},
    "null,3": {"type": "categorical", "choices": ["null", 3]},
    "[1,2],[3]": {"type": "categorical", "choices": ["[1,2]", "[3]"]},
    "'a,b','c'": {"type": "categorical", "choices": ["'a,b'", "'c'"]},
    "true,false": {"type": "categorical", "choices": [True, False]},
    "interval(0.1, 1)": {"type": "float", "low": 0.1, "high": 1.0},
    "interval(1, 8)": {"type": "int", "low": 1, "high": 8},
    "int(interval(1.0, 8))": {"type": "int", "low": 1, "high": 8},
    "float(interval(start=1, end=8))": {"type": "float", "low": 1.0, "high": 8.0},
    "range(1,5)": {"type": "int", "low": 1, "high": 4},
    "range(4)": {"type": "int", "low": 0, "high": 3},
    "range(0,10,4)": {"type": "int", "low": 0, "high": 8, "step": 4},
    "range(10,0,-5)": {"type": "int", "low": 5, "high": 10, "step": 5},
    "range(start=0.1, stop=0.4, step=0.1)": {"type": "float", "low": 0.1, "high": 0.3, "step": 0.1},
    "tag(log, interval(1e-4, 1e-1))": {"type": "float", "low": 1e-4, "high": 0.1, "log": True},
    "int(tag(log, interval(1, 64)))": {"type": "int", "low": 1, "high": 64, "log": True},
    "tag(fast, choice(a, b))": {"type": "categorical", "choices": ["a", "b"]},
    "tag(fast, sweep=range(1,3))": {"type": "int", "low": 1, "high": 2},
}
NO_SWEEPS = ("0.1", "adam", "[1,2]", "{a:1,b:2}", "'a,b'", "int(3.5)", "extend_list(1)", "")


@pytest.mark.parametrize("value", [*SWEEPS, *NO_SWEEPS])
def test_what_an_override_sweeps_is_a_parameter(value):
    assert sweep_of(value) == SWEEPS.get(value)


@pytest.mark.parametrize("value", [each for each in (*SWEEPS, *NO_SWEEPS) if "extend" not in each])
def test_hydra_itself_sweeps_the_same_values(value):
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser")
    (override,) = parser.OverridesParser.create().parse_overrides([f"key={value}"])
    assert override.is_sweep_override() == (value in SWEEPS)


@pytest.mark.parametrize("value", ["interval(1)", "range()", "interval(a,b)", "range(1,2,0)"])
def test_a_sweep_that_cannot_be_read_is_refused(value):
    with pytest.raises(UserError):
        sweep_of(value)
