"""What a search believes of its space, as a document."""

import json
from contextlib import closing

from hpsearch.store.store import Store
from hpsearch.views.beliefs import MOST_NEW, beliefs_document
from support.studies.driven import drive
from support.studies.small import Bowl, search_by, spec_with

SPACE = {
    "x": {"type": "float", "low": 0.0, "high": 1.0},
    "y": {"type": "float", "low": 0.001, "high": 1.0, "log": True},
    "kind": {"type": "categorical", "choices": ["a", "b"]},
}


def believed(url, **changes):
    search = search_by("random", "promotion")
    budget = {"trials": 40, "per_trial": {"epochs": 9}}
    spec = spec_with(**{"space": SPACE, "search": search, "budget": budget, **changes})
    drive(url, spec, Bowl(diverges=0.75), workers=2)
    with closing(Store.open(url)) as store:
        return beliefs_document(store, "plain")


def test_it_has_what_is_expected_what_matters_and_where_trials_fail(sqlite_url):
    found = believed(sqlite_url)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert len(found["new"]) == MOST_NEW
    for each in found["new"]:
        assert each["params"].keys() == SPACE.keys()
        assert abs(each["params"]["x"] - 0.3) < 0.2, "losses are least at 0.3"
        assert 0 < each["deviation"] < 1
    expected = [each["expected"] for each in found["new"]]
    assert expected == sorted(expected)
    x, y, kind = (found["parameters"][name] for name in SPACE)
    assert x["importance"] > 0.5 > max(y["importance"], kind["importance"])
    assert [part["failed"].get("diverged", 0) > 0 for part in x["parts"]] == [False] * 3 + [True]
    assert x["parts"][3]["failed"]["diverged"] == x["parts"][3]["tried"]
    assert sum(part["tried"] for part in x["parts"]) == 40
    assert x["parts"][1]["expected"] < x["parts"][3]["expected"]
    assert (x["parts"][0]["from"], x["parts"][0]["to"]) == (0.0, 0.25)
    assert y["parts"][0]["to"] < 0.01, "a logarithmic range has logarithmic parts"
    assert [part["value"] for part in kind["parts"]] == ["a", "b"]


def test_before_the_model_knows_anything_it_says_so(sqlite_url):
    found = believed(sqlite_url, budget={"trials": 2, "per_trial": {"epochs": 9}})
    assert found["new"] == []
    assert found["parameters"]["x"]["importance"] is None
    assert {part["expected"] for part in found["parameters"]["x"]["parts"]} == {None}
    assert sum(part["tried"] for part in found["parameters"]["x"]["parts"]) == 2


def test_of_several_objectives_it_tells_what_was_tried(sqlite_url):
    both = [{"metric": name, "direction": "minimize"} for name in ("loss", "loss2")]

    class Both(Bowl):
        def measure(self, params, seed, resource):
            found = super().measure(params, seed, resource)
            return {**found, "loss2": params["y"]}

    spec = spec_with(objective=both, space=SPACE, search=search_by("random", "none"))
    drive(sqlite_url, spec, Both())
    with closing(Store.open(sqlite_url)) as store:
        found = beliefs_document(store, "plain")
    assert found["new"] == []
    assert sum(part["tried"] for part in found["parameters"]["kind"]["parts"]) == 9
