"""Studies that agents run by themselves, within what a person has granted."""

import os
import re
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from hpsearch.errors import StudyExists, UserError
from hpsearch.store.store import Store
from support.files.pages import texts
from support.patience import wait_until

pytest.importorskip("mcp", reason="needs the extra mcp")

from hpsearch.domain.facts import RequestKind
from hpsearch.plugins.mcp.campaign import Campaign, granted

PROGRAM = "from hpsearch.cli.main import main; main()"


def file(name="own", budget="gpu_hours: 3", **more):
    lines = {
        "study": name,
        "space": "{x: {type: float, low: 0.0, high: 1.0}}",
        "objective": "{metric: loss, direction: minimize}",
        "budget": f"{{trials: 3, {budget}, per_trial: {{epochs: 3}}}}",
        **more,
    }
    return "\n".join(f"{key}: {value}" for key, value in lines.items())


@pytest.fixture
def campaign(sqlite_url):
    return Campaign(sqlite_url, {"gpu_hours": 4.0})


def trained(campaign, name="own"):
    """What was handed out, in order, of all trials of a study, told to their ends."""
    handed_out = []
    while (trial := campaign.ask(name))["number"] is not None:
        handed_out.append(trial)
        for epoch in range(int(trial["resource"]) + 1, trial["budget"] + 1):
            loss = {"loss": trial["params"]["x"] / epoch}
            told = campaign.tell(name, trial["number"], loss, epoch, checkpoint=f"at {epoch}")
            if not told["goes_on"]:
                break
    assert "trials have ended" in trial["ended"]
    return handed_out


def test_an_agent_starts_trains_and_ends_a_study_and_its_rest_goes_back(campaign):
    assert campaign.start(file())["study"] == "own"
    assert campaign.grant()["left"] == {"gpu_hours": 1.0}
    assert {trial["number"] for trial in trained(campaign)} == {0, 1, 2}
    assert campaign.grant()["left"]["gpu_hours"] == pytest.approx(4.0, abs=0.1)


def test_a_trial_that_paused_goes_on_from_the_checkpoint_that_was_told(campaign):
    campaign.start(file().replace("trials: 3", "trials: 9").replace("epochs: 3", "epochs: 9"))
    handed_out = trained(campaign)
    again = [trial for trial in handed_out if trial["attempt"] > 1]
    assert again
    for trial in again:
        assert trial["resume_from"] == f"at {trial['resource']}"


def test_all_studies_together_never_exceed_the_grant_whatever_server_starts_them(
    campaign, sqlite_url
):
    campaign.start(file())
    again = Campaign(sqlite_url, {"gpu_hours": 4.0})
    with pytest.raises(UserError, match="may take 2 gpu_hours more than is left"):
        again.start(file("other"))
    with closing(Store.open(sqlite_url)) as store:
        assert store.study_names() == ["own"]
    assert again.start(file())["study"] == "own", "the same file goes on"
    assert again.start(file("small", "gpu_hours: 1"))
    assert again.grant()["left"] == {"gpu_hours": 0.0}
    less = Campaign(sqlite_url, {"gpu_hours": 2.0})
    with pytest.raises(UserError, match="more than is left"):
        less.ask("own")
    with pytest.raises(StudyExists):
        again.start(file("small", "gpu_hours: 0.5"))


def test_a_stopped_study_gives_back_what_it_has_not_used_and_can_be_started_again(campaign):
    campaign.start(file())
    trial = campaign.ask("own")
    campaign.stop("own")
    assert campaign.grant()["left"]["gpu_hours"] == pytest.approx(4.0, abs=0.1)
    with pytest.raises(UserError, match="is not in your hands"):
        campaign.tell("own", trial["number"], {"loss": 1.0})
    campaign.start(file("other", "gpu_hours: 2"))
    with pytest.raises(UserError, match="more than is left"):
        campaign.start(file())
    campaign.stop("other")
    campaign.start(file())
    assert {each["number"] for each in trained(campaign)} == {0, 1, 2}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"budget": "wall_clock: 1h"}, "budget.gpu_hours is missing"),
        ({"task": "{kind: command, run: 'rm -rf {x}'}"}, "no task"),
        ({"task": "{kind: os:system}"}, "no task"),
        ({"track": "tensorboard"}, "no track"),
        ({"resources": "{gpu: 0.01}"}, "no resources.gpu"),
    ],
)
def test_what_a_study_of_an_agent_may_not_have(campaign, sqlite_url, changes, why):
    with pytest.raises(UserError, match=why):
        campaign.start(file(**changes))
    with closing(Store.open(sqlite_url)) as store:
        assert store.study_names() == []


def test_money_is_granted_at_the_persons_price(sqlite_url):
    campaign = Campaign(sqlite_url, granted("cost=20,price=2.5"))
    with pytest.raises(UserError, match=r"cost_per_gpu_hour must be 2\.5"):
        campaign.start(file(budget="cost: 5, cost_per_gpu_hour: 0.001"))
    campaign.start(file(budget="cost: 5, cost_per_gpu_hour: 2.5"))
    assert campaign.grant()["left"] == {"cost": 15.0}


TWICE = "gpu_hours=1,gpu_hours=2"


@pytest.mark.parametrize(
    "text", ["", "gpu_hours", "gpu_hours=x", "cost=5", "hours=4", "price=2", TWICE]
)
def test_a_grant_that_grants_nothing_is_refused(text):
    with pytest.raises(UserError, match="gpu_hours=4"):
        granted(text)


def test_studies_of_people_are_not_an_agents(campaign, flowers):
    for act in (campaign.ask, campaign.stop):
        with pytest.raises(UserError, match="was not started by an agent"):
            act(flowers)
    with pytest.raises(UserError, match="was not started by an agent"):
        campaign.request(flowers, RequestKind.STOP, {"trial": 0}, "agent")


def test_an_agents_proposal_is_its_next_trial_and_a_failure_is_kept(campaign, sqlite_url):
    campaign.start(file())
    wanted = {"params": {"x": 0.25}, "why": "x"}
    answer, _ = campaign.request("own", RequestKind.PROPOSE, wanted, "agent ann")
    trial = campaign.ask("own")
    assert (trial["number"], trial["params"]) == (answer.trial, {"x": 0.25})
    told = campaign.tell("own", answer.trial, failed="no memory", kind="out_of_memory")
    assert not told["goes_on"]
    with pytest.raises(UserError, match=r"refuses: .*x"):
        campaign.request("own", RequestKind.PROPOSE, {"params": {"x": 9}}, "agent")
    with closing(Store.open(sqlite_url)) as store:
        (failed, *_) = store.load("own").trials
    assert failed.error_kind == "out_of_memory"


HANGS = """
import pathlib, time
calls = []

def hang():
    calls.append(1)
    if len(calls) > 8:
        pathlib.Path("hangs").touch()
        time.sleep(10_000)

"""
"""A training that hangs, before the loop comes to its proposal."""


def test_the_loop_of_the_page_goes_on_after_it_was_killed_with_its_server(tmp_path):
    (loop,) = texts("agents", "python")
    (tmp_path / "loop.py").write_text(loop)
    (tmp_path / "hanging.py").write_text(
        HANGS + loop.replace("    return 1", "    hang(); return 1")
    )
    program = tmp_path / "hpsearch"
    program.write_text(f'#!/bin/sh\necho $$ >> pids\nexec {sys.executable} -c "{PROGRAM}" "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen([sys.executable, "hanging.py"], cwd=tmp_path, env=env) as first:
        wait_until((tmp_path / "hangs").exists)
        os.kill(int((tmp_path / "pids").read_text().split()[-1]), signal.SIGKILL)
        first.kill()
    said = subprocess.run(
        [sys.executable, "loop.py"],
        cwd=tmp_path,
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    assert re.match(r"\{'rate': 0\.0\d+\}\ntrained once", said.stdout)
    url = f"sqlite:///{tmp_path}/campaign.db"
    with closing(Store.open(url)) as store:
        history = store.load("flowers")
    assert history.study.reason == "all 16 trials have ended"
    assert "proposed" in [trial.role.value for trial in history.trials]
    assert Campaign(url, {"gpu_hours": 1.0}).grant()["left"]["gpu_hours"] > 0.9
