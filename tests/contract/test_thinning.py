"""`hpsearch db tidy`: old studies lose reports, and say the same as before."""

import json
import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from contract.conftest import Run
from hpsearch.domain.records import THINNED, StudyRecord, StudyState, Trial
from hpsearch.errors import StudyHeld
from hpsearch.search.curve_model.curves import CurveReader
from hpsearch.search.curve_model.earlier import earlier_study_of
from hpsearch.search.curve_model.encoding import SpaceEncoding
from hpsearch.store.audit.invariants import violations
from hpsearch.store.reading.queries import find_study
from hpsearch.store.reading.trust import study_trust
from hpsearch.store.store import Store
from hpsearch.store.upkeep import thinning
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.space import distributions
from hpsearch.views.report.data import report_data
from hpsearch.views.report.page import markdown_report
from support.studies.driven import drive
from support.studies.small import spec_with

NOW = 1e6
Call = Callable[..., str]


@dataclass
class Wavy:
    """Curves that go up and down, so that the best report is seldom the last; loss and size."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        wave = 0.05 * math.sin(resource * (1 + params["x"]))
        loss = (params["x"] - 0.3) ** 2 + 1 / (1 + resource) + wave
        return {"loss": loss, "size": params["x"] + 0.3 * math.cos(resource)}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return resource * (0.5 + params["x"])


def spec_of(name: str = "old", trials: int = 10, **changes: Any) -> StudySpec:
    search = {"sampler": "random", "pruner": "promotion", "confirm": {"top": 2, "seeds": 2}}
    budget = {"trials": trials, "per_trial": {"epochs": 120}}
    return spec_with(**{"study": name, "budget": budget, "search": search, **changes})


@pytest.fixture
def call(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Call:
    """Runs a command on the test's database, and returns all that it printed."""
    monkeypatch.chdir(tmp_path)  # which stands for the folder of checkpoints

    def said(*words: str, code: int = 0) -> str:
        ended, out, err = run(*words, "--storage", store.url)
        assert ended == code, err
        return out + err

    return said


def _rounded(text: str) -> float:
    return round(float(text), 6)


def said_of(store: Store, spec: StudySpec, call: Call) -> dict[str, Any]:
    """All that a study says about its result, and that a later study learns from it."""
    name = spec.study
    history = store.load(name)
    with store.reading() as connection:
        study = find_study(connection, name)
        report = markdown_report(report_data(connection, study, NOW))
        rungs = study_trust(connection, study).rungs
    reader = CurveReader(SpaceEncoding(distributions(spec.space)), history, 120)
    earlier = earlier_study_of(history, spec.space)
    # A sum in PostgreSQL is of rows in no order, and rounded accordingly.
    standing = json.loads(call("status", name, "--format", "json"), parse_float=_rounded)
    return {
        "best": json.loads(call("best", name, "--top", "99", "--format", "json")),
        "trials": json.loads(call("trials", name, "--format", "json")),
        "status": standing | {"checkpoint_bytes": None},  # of no folder of its own
        "rungs": rungs,
        "report": report,
        "seen": [trial.seen_at for trial in history.trials],
        "curves": [(c.shares, c.values, c.goodness) for c in reader.curves()],
        "evidence": earlier,
    }


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"constraints": {"size": {"max": 0.6}}},
        {"search": {"sampler": "random", "pruner": "none"}},
    ],
    ids=["promotion", "a limit", "no pruner"],
)
def test_a_thinned_study_says_the_same(changes, store, call):
    spec = spec_of(**changes)
    drive(store.url, spec, Wavy(), workers=3)
    before, whole = said_of(store, spec, call), store.load("old")
    assert before["evidence"] is not None
    assert "would go" in call("db", "tidy", "--older-than", "90d", "--dry-run")
    assert said_of(store, spec, call) == before
    assert "old: removed" in call("db", "tidy", "--older-than", "90d")
    assert said_of(store, spec, call) == before
    left = store.load("old")
    assert most_reports(left.trials) < 45 < most_reports(whole.trials)
    for trial in left.trials:
        full = whole.trials[trial.number].reports
        assert {at: full[at] for at in trial.reports} == trial.reports, "reports stay as they were"
        if len(full) > len(trial.reports):
            gaps = [b - a for a, b in zip([0, *trial.reports], trial.reports, strict=False)]
            assert max(gaps) <= 2 * len(full) / thinning.MOST_SPREAD
    with store.reading() as connection:
        assert violations(connection) == []
    assert "removed 0 of" in call("db", "tidy", "--older-than", "90d"), "nothing is thinned twice"


def most_reports(trials: list[Trial]) -> int:
    return max(len(trial.reports) for trial in trials)


def test_a_thinned_study_goes_on_as_it_would_have(tmp_path):
    ends = []
    for name in ("whole", "thinned"):
        url = f"sqlite:///{tmp_path / name}.db"
        sampled = {"sampler": "curve_gp", "pruner": "promotion"}
        drive(url, spec_of(trials=8, search=sampled), Wavy(), workers=2)
        with closing(Store.open(url)) as store:
            if name == "thinned":
                with store.reading() as connection:
                    study = find_study(connection, "old")
                thinning.thin(store, thinning.thinning_of(store, study))
            more = spec_of(trials=14, search=sampled)
            drive(url, more, Wavy(), workers=2, resume=True)
            ends.append(
                [(each.params, each.state, each.value) for each in store.load("old").trials]
            )
    assert ends[0] == ends[1]


def test_studies_that_may_go_on_are_left_alone(store, call):
    drive(store.url, spec_of("interrupted"), Wavy(), stop_after=200)
    drive(store.url, spec_of("finished", trials=2), Wavy())
    driven = store.create_study(StudyRecord(0, "driven", ""))
    store.acquire(driven.id, "somebody@far:1#2", 1e9)
    before = store.load("interrupted").trials
    said = call("db", "tidy", "--older-than", "1d")
    assert "finished: removed" in said
    assert "\ninterrupted:" not in said
    assert "\ndriven:" not in said
    assert store.load("interrupted").trials == before
    if store.dialect.name == "sqlite":
        assert "works on driven" in said


def test_a_young_study_is_left_alone(store, call):
    drive(store.url, spec_of(trials=2), Wavy())
    assert "no study finished that long ago" in call("db", "tidy", "--older-than", "36500d")
    assert THINNED not in store.load("old").trials[0].system_attrs
    assert "--older-than: must be a duration" in call("db", "tidy", "--older-than", "x", code=2)


def test_a_thinning_that_was_killed_is_gone_on_with(store, call, monkeypatch):
    spec = spec_of()
    drive(store.url, spec, Wavy(), workers=3)
    before = said_of(store, spec, call)
    with monkeypatch.context() as patch:
        patch.setattr(thinning, "TRIALS_AT_ONCE", 2)
        patch.setattr(thinning.time, "sleep", _killed)
        with store.reading() as connection:
            study = find_study(connection, "old")
        planned = thinning.thinning_of(store, study)
        assert len(planned.staying) > 2
        with pytest.raises(KeyboardInterrupt):
            thinning.thin(store, planned)
    marked = [trial.number for trial in store.load("old").trials if THINNED in trial.system_attrs]
    assert len(marked) == 2
    assert said_of(store, spec, call) == before
    with pytest.raises(StudyHeld, match="was continued"):
        thinning.thin(store, planned)
    call("db", "tidy", "--older-than", "90d")
    assert said_of(store, spec, call) == before
    assert most_reports(store.load("old").trials) < 45


def _killed(_: float) -> None:
    raise KeyboardInterrupt


def test_a_driver_that_takes_the_study_over_stops_the_thinning(store):
    drive(store.url, spec_of(trials=4), Wavy())
    with store.reading() as connection:
        planned = thinning.thinning_of(store, find_study(connection, "old"))
    store.acquire(planned.study.id, "somebody@far:1#2", 1e9)
    with pytest.raises(StudyHeld):
        thinning.thin(store, planned)
    assert all(THINNED not in trial.system_attrs for trial in store.load("old").trials)
    assert store.find_study("old").state is StudyState.FINISHED


def test_space_is_given_back(sqlite_url, run):
    drive(sqlite_url, spec_of(), Wavy(), workers=3)
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    before = file.stat().st_size
    _, _, said = run(*["db", "tidy", "--older-than", "90d", "--storage"], sqlite_url)
    assert file.stat().st_size < before
    assert "before" in said
