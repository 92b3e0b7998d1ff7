"""A campaign of an agent in a granted folder, whose server and drivers are killed meanwhile."""

import asyncio
import os
import re
import signal
import sys
from contextlib import closing, suppress

import pytest

from hpsearch.store.store import Store
from support.files.changed_code import GAIN, ChangedCode
from support.patience import PATIENCE_S, wait_until
from unit.plugins.mcp.test_folder import file

mcp = pytest.importorskip("mcp", reason="needs the extra mcp")

BUDGET = {"trials": 1, "gpu_hours": 0.5, "per_trial": {"epochs": 1}}
STUDY = file(budget=BUDGET, resources={"workers": 2})
SAME_SEED = "random.seed(seed)"
HELD = f"{SAME_SEED}\nimport time\nwhile os.path.exists('hold'): time.sleep(0.01)"
SERVER = 'echo $$ > pid; exec "$@"'
PROGRAM = "from hpsearch.cli.main import main; main()"


@pytest.fixture
def serve(shared_ray, tmp_path):
    """A function that lets an agent work, given its calls of tools, with a server of its own."""
    granted = ("--grant", "gpu_hours=1", "--folder", str(tmp_path / "code"))
    words = ("mcp", "--storage", f"sqlite:///{tmp_path}/campaign.db", *granted)
    server = mcp.StdioServerParameters(
        command="sh",
        args=["-c", SERVER, "sh", sys.executable, "-c", PROGRAM, *words],
        env={**os.environ, **shared_ray, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
    )

    def work(do):
        async def run():
            async with mcp.Client(server) as client:

                async def call(tool, **arguments):
                    answer = await client.call_tool(tool, arguments)
                    found = answer.structured_content or answer.content[0].text
                    return found["result"] if set(found) == {"result"} else found

                return await do(call)

        return asyncio.run(asyncio.wait_for(run(), PATIENCE_S))

    return work


async def until(call, holds, tool="status"):
    while not holds(found := await call(tool, study="guess")):
        await asyncio.sleep(0.1)
    return found


def test_a_campaign_in_a_folder_goes_on_after_kills_and_stays_within_its_grant(serve, tmp_path):
    code, store = ChangedCode(tmp_path / "code"), Store.open(f"sqlite:///{tmp_path}/campaign.db")
    code.change(SAME_SEED, HELD)
    code.commit()
    (code.folder / "hold").touch()

    async def dies(call):
        assert "a driver trains it" in (await call("start", file=STUDY))["told"]
        await until(call, lambda status: status["running"])
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        os.kill(int(re.search(r":(\d+)#", store.holder("guess").owner)[1]), signal.SIGKILL)

    async def stops(call):
        assert (await call("grant"))["left"] == {"gpu_hours": 0.5}, "what a dead driver has"
        more = file(study="other", budget={**BUDGET, "gpu_hours": 0.6})
        assert "0.1 gpu_hours more than is left" in await call("start", file=more)
        assert "a driver trains it" in (await call("start", file=STUDY))["told"]
        assert (await call("start", file=STUDY))["told"] == "its driver goes on"
        assert "saves and ends" in (await call("stop", study="guess"))["told"]
        await until(call, lambda status: status["state"] == "interrupted")
        assert (await call("grant"))["left"]["gpu_hours"] > 0.9
        (code.folder / "hold").unlink()
        assert "a driver trains it" in (await call("start", file=STUDY))["told"]
        await until(call, lambda status: status["state"] == "finished")
        assert (await call("best", study="guess"))["trials"][0]["number"] == 0
        assert (await call("beliefs", study="guess"))["study"] == "guess"
        gain = {"patch": code.patch(*GAIN), "why": "more numbers"}
        assert "no driver" in (await call("try_patch", study="guess", **gain))["told"]
        await call("start", file=STUDY)
        found = await until(call, lambda tests: tests and tests[0]["decided"], "revisions")
        assert (found[0]["why"], found[0]["verdict"]) == ("more numbers", "keep")

    with closing(store):
        with suppress(Exception):  # its client's
            serve(dies)
        serve(stops)
        wait_until(lambda: store.holder("guess") is None)
    assert "study guess has ended" in (tmp_path / "campaign.db.guess.log").read_text()
