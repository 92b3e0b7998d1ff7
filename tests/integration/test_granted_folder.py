"""A campaign of an agent in a granted folder, whose server and drivers are killed meanwhile."""

import asyncio
import os
import re
import signal
import sys
from contextlib import closing, suppress

import pytest
import yaml

from hpsearch.store.store import Store
from support.files.changed_code import GAIN, TASK, ChangedCode
from support.patience import PATIENCE_S, wait_until

mcp = pytest.importorskip("mcp", reason="needs the extra mcp")

STUDY = {
    "study": "guess",
    "task": TASK,
    "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
    "objective": {"metric": "loss", "direction": "minimize"},
    "budget": {"trials": 1, "gpu_hours": 0.5, "per_trial": {"epochs": 1}},
    "search": {"sampler": "random", "pruner": "none"},
    "resources": {"workers": 2},
}
HELD = "random.seed(seed)\nimport time\nwhile os.path.exists('hold'): time.sleep(0.01)"
SERVER = 'echo $$ > "$0"; exec "$@"'
PROGRAM = "from hpsearch.cli.main import main; main()"


class Agent:
    """An agent whose server runs as a process of its own, for as long as `do` takes."""

    def __init__(self, place, ray):
        self.code = ChangedCode(place / "code")
        self.code.change("random.seed(seed)", HELD)
        self.code.commit()
        self.hold = self.code.folder / "hold"
        self.url = f"sqlite:///{place}/campaign.db"
        self.pid = place / "pid"
        served = ["mcp", "--storage", self.url, "--grant", "gpu_hours=1"]
        served += ["--folder", str(self.code.folder)]
        words = ["-c", SERVER, str(self.pid), sys.executable, "-c", PROGRAM, *served]
        environment = {**os.environ, **ray, "OMP_NUM_THREADS": "1"}
        self._server = mcp.StdioServerParameters(command="sh", args=words, env=environment)

    def works(self, do):
        async def run():
            async with mcp.Client(self._server) as client:

                async def call(tool, **arguments):
                    answer = await client.call_tool(tool, arguments)
                    text = answer.structured_content or answer.content[0].text
                    return text["result"] if set(text) == {"result"} else text

                return await do(call)

        return asyncio.run(asyncio.wait_for(run(), PATIENCE_S))

    def kill_driver(self):
        with closing(Store.open(self.url)) as store:
            owner = store.holder("guess").owner
        os.kill(int(re.search(r":(\d+)#", owner)[1]), signal.SIGKILL)


async def until(call, **expected):
    """Wait until the study's status has these values."""
    while True:
        status = await call("status", study="guess")
        if expected.items() <= status.items():
            return status
        await asyncio.sleep(0.1)


def test_a_campaign_in_a_folder_goes_on_after_kills_and_stays_within_its_grant(
    shared_ray, tmp_path
):
    agent, file = Agent(tmp_path, shared_ray), yaml.safe_dump(STUDY)

    async def dies(call):
        told = await call("start", file=file)
        assert "a driver trains it" in told["told"]
        status = await call("status", study="guess")
        while not status["running"]:
            await asyncio.sleep(0.1)
            status = await call("status", study="guess")
        os.kill(int(agent.pid.read_text()), signal.SIGKILL)
        agent.kill_driver()
        with suppress(Exception):
            await call("grant")

    async def stops(call):
        assert (await call("grant"))["left"] == {"gpu_hours": 0.5}, "a dead driver's is kept"
        other = yaml.safe_dump(STUDY | {"study": "other"}).replace("0.5", "0.6")
        assert "0.1 gpu_hours more than is left" in await call("start", file=other)
        assert "a driver trains it" in (await call("start", file=file))["told"]
        assert (await call("start", file=file))["told"] == "its driver goes on"
        assert "saves and ends" in (await call("stop", study="guess"))["told"]
        await until(call, state="interrupted")
        assert (await call("grant"))["left"]["gpu_hours"] > 0.9

    async def ends(call):
        assert "a driver trains it" in (await call("start", file=file))["told"]
        await until(call, state="finished")
        assert (await call("best", study="guess"))["trials"][0]["number"] == 0
        assert (await call("beliefs", study="guess"))["study"] == "guess"
        gain = {"patch": agent.code.patch(*GAIN), "why": "more numbers"}
        assert "no driver" in (await call("try_patch", study="guess", **gain))["told"]
        await call("start", file=file)
        while (found := await call("revisions", study="guess"))[0]["verdict"] == "open":
            await asyncio.sleep(0.1)
        return found

    agent.hold.touch()
    with suppress(Exception):
        agent.works(dies)
    agent.works(stops)
    agent.hold.unlink()
    (tested,) = agent.works(ends)
    assert (tested["why"], tested["verdict"]) == ("more numbers", "keep")
    log = tmp_path / "campaign.db.guess.log"
    assert "study guess has ended" in log.read_text()

    def is_over():
        with closing(Store.open(agent.url)) as store:
            return store.holder("guess") is None

    wait_until(is_over)
