"""`hpsearch mcp`, by the protocol's own client, over stdin and stdout of the real command."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from importlib.metadata import version
from typing import Any

import pytest

from hpsearch.domain.facts import RequestKind
from hpsearch.domain.history import Changes
from hpsearch.running.creation.study import create_study
from hpsearch.store.owners import this_process
from hpsearch.store.store import Store
from support.files.changed_code import GAIN, READS, TASK, ChangedCode
from support.studies.small import spec_with

mcp = pytest.importorskip("mcp", reason="needs the extra mcp")

PROGRAM = "from hpsearch.cli.main import main; main()"
READING = {"studies", "status", "best", "trials", "trial", "compare", "revisions", "report"}
READING |= {"beliefs"}


def served(url: str, do: Callable[[Any], Awaitable[Any]], *options: str, most_s: float = 60) -> Any:
    """What a client gets of the command."""

    async def run() -> Any:
        arguments = ["-c", PROGRAM, "mcp", "--storage", url, *options]
        server = mcp.StdioServerParameters(command=sys.executable, args=arguments)
        async with mcp.Client(server) as client:
            return await do(client)

    return asyncio.run(asyncio.wait_for(run(), most_s))


def content(result: Any) -> Any:
    """What a tool answered; a list is wrapped by the protocol."""
    assert not result.is_error, result.content
    found = result.structured_content
    return found["result"] if set(found) == {"result"} else found


def complaint(result: Any) -> str:
    assert result.is_error
    return str(result.content[0].text)


def test_an_agent_reads_studies_and_is_told_how_sure_the_best_is(flowers, sqlite_url):
    async def read(client):
        call = client.call_tool
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READING
        assert all(tool.annotations.read_only_hint for tool in tools)
        assert client.server_info.version == version("hpsearch")
        return (
            await call("studies", {}),
            await call("status", {"study": "flowers"}),
            await call("best", {"study": "flowers", "top": 2}),
            await call("trials", {"study": "flowers", "where": "opt = 'lion'", "limit": 1}),
            await call("trial", {"study": "flowers", "number": 1}),
            await call("compare", {"study": "flowers", "numbers": [0, 2]}),
            await call("report", {"study": "flowers"}),
        )

    studies, status, best, trials, trial, compared, report = map(content, served(sqlite_url, read))
    assert [each["study"] for each in studies] == ["flowers"]
    assert status["failures"][0]["kind"] == "diverged"
    assert [each["number"] for each in best["trials"]] == [2, 0]
    assert best["trials"][0]["confirmed"]["runs"] == 2
    assert best["how_sure"][0].startswith("trained with other seeds")
    assert [each["number"] for each in trials] == [1]
    assert trial["error_text"] == "loss is nan"
    assert json.dumps(trial, allow_nan=False)
    assert compared["differing"]["lr"] == [0.1, 0.01]
    assert "# Study `flowers`" in report


def test_mistakes_are_answered_with_what_to_do(flowers, sqlite_url):
    async def fail(client):
        call = client.call_tool
        return (
            await call("status", {"study": "trees"}),
            await call("trials", {"study": "flowers", "where": "size >"}),
            await call("trial", {"study": "flowers", "number": 99}),
            await call("propose", {"study": "flowers", "params": {}, "why": "x"}),
        )

    study, where, trial, change = map(complaint, served(sqlite_url, fail))
    assert "trees" in study
    assert "--where" in where or "size" in where
    assert "it has trials 0 to 5" in trial
    assert "propose" in change  # there is no such tool without --allow-changes


def test_a_tool_takes_no_other_arguments_and_no_other_types(flowers, sqlite_url):
    wrong = {
        ("trials", "filter", "number < 2"): "no argument 'filter'; known are",
        ("trials", "wher", "number < 2"): "did you mean where?",
        ("trials", "limit", True): "valid integer",
        ("trials", "limit", "3"): "valid integer",
        ("trial", "number", True): "valid integer",
        ("trial", "number", 1.5): "valid integer",
        ("best", "top", True): "valid integer",
        ("compare", "numbers", (True, 0)): "valid integer",
        ("report", "trial", 1): "no argument 'trial'",
        ("studies", "name", "x"): "no argument 'name'",
        ("stop_trial", "number", False): "valid integer",
        ("propose", "parameters", "{}"): "did you mean params?",
    }

    async def fail(client):
        tools = (await client.list_tools()).tools
        assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
        usual = {
            "trial": {"number": 0},
            "compare": {"numbers": [0, 1]},
            "stop_trial": {"number": 0},
        }
        usual["propose"] = {"params": {}, "why": "x"}
        answers = []
        for tool, name, value in wrong:
            study = {} if tool == "studies" else {"study": "flowers"}
            given = {**study, **usual.get(tool, {}), name: value}
            answers.append(await client.call_tool(tool, given))
        return answers

    answers = map(complaint, served(sqlite_url, fail, "--allow-changes"))
    for (call, why), answer in zip(wrong.items(), answers, strict=True):
        assert why in answer, call


ODD = (
    *(None, -1, 2**63, 10**30, 1.5, float("nan"), "", "²", "\0", "(" * 5000, [0] * 30_000),
    *([0, 10**30], {"lr": 10**400}, {f"p{n}": n for n in range(2000)}),
)


@pytest.mark.thorough
def test_whatever_a_tool_is_given_its_answer_says_why_not(flowers, sqlite_url):
    proposal = {"params": {}, "why": "x", "checkpoint": 0}
    tools = {
        "best": {"top": 1},
        "trials": {"where": "number < 2", "sort": "number", "limit": 1},
        "trial": {"number": 0},
        "compare": {"numbers": [0, 1]},
        "propose": proposal,
        "stop_trial": {"number": 0},
    }

    async def call_all(client):
        refused = []
        for tool, arguments in tools.items():
            given = {"study": "flowers", **arguments}
            for name in arguments or given:
                for odd in ODD:
                    answer = await client.call_tool(tool, {**given, name: odd})
                    if answer.is_error:
                        refused.append((tool, name, complaint(answer)))
        return refused

    refused = served(sqlite_url, call_all, "--allow-changes", most_s=1200)
    assert {tool for tool, _, _ in refused} == set(tools)
    for tool, name, why in refused:
        assert why.removeprefix(f"Error executing tool {tool}"), name
        assert len(why) < 10_000


@pytest.mark.thorough
def test_an_agent_asks_a_studys_driver_which_may_refuse(flowers, sqlite_url):
    with closing(Store.open(sqlite_url)) as store:
        study = store.find_study("flowers")
        study.state = type(study.state)("running")
        store.commit(study.id, _changes(study))

        async def change(client):
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == READING | {"propose", "try_patch", "stop_trial"}
            call = client.call_tool
            proposed = {"study": "flowers", "params": {"lr": 0.2}, "why": "the best is near"}
            first = content(await call("propose", proposed))
            lease = store.acquire(study.id, this_process(), 60.0)
            stopping = asyncio.create_task(call("stop_trial", {"study": "flowers", "number": 0}))
            while len(asked := store.waiting(study.id)) < 2:
                await asyncio.sleep(0.05)
            for each in asked:
                each.handled, each.refused = 2.0, "it has ended already"
            store.commit(study.id, _changes(None, asked), lease)
            return first, asked, complaint(await stopping)

        first, asked, refused = served(sqlite_url, change, "--allow-changes")
    assert first["told"] == "no driver works on the study: the next one sees to it"
    assert [each.kind for each in asked] == [RequestKind.PROPOSE, RequestKind.STOP]
    assert asked[0].content == {"params": {"lr": 0.2}, "why": "the best is near"}
    assert asked[0].origin.startswith("agent ")
    assert "study flowers refuses: it has ended already" in refused


def test_a_skill_for_agents_is_in_the_package_and_names_tools_that_are_there(run, sqlite_url):
    said = run("mcp", "--skill").out

    async def tools(client):
        return {tool.name for tool in (await client.list_tools()).tools}

    served_tools = served(sqlite_url, tools, "--grant", "gpu_hours=1")
    assert served_tools == READING | {
        "grant",
        "start",
        "ask",
        "tell",
        "propose",
        "try_patch",
        "stop_trial",
        "stop",
    }
    assert said.startswith("---\nname: hpsearch\ndescription: ")
    named = set(re.findall(r"`([a-z]+)`", said))
    assert {"grant", "start", "ask", "tell", "beliefs", "propose", "best", "stop"} <= named


def test_an_agent_asks_for_the_test_of_a_patch_and_hears_why_another_is_not_tested(
    sqlite_url, tmp_path
):
    code = ChangedCode(tmp_path / "code")

    async def try_both(client):
        call = client.call_tool
        cheat = {"study": "plain", "patch": code.patch(*READS), "why": "more data"}
        gain = {"study": "plain", "patch": code.patch(*GAIN), "why": "more data"}
        refused = complaint(await call("try_patch", cheat))
        told = content(await call("try_patch", gain))["told"]
        return refused, told, content(await call("revisions", {"study": "plain"}))

    with closing(Store.open(sqlite_url)) as store:
        made = create_study(store, spec_with(base=code.folder, task=TASK), "").study
        refused, told, revisions = served(sqlite_url, try_both, "--allow-changes")
        (asked,) = store.waiting(made.id)
    assert "it names data/valid, which belongs to the harness" in refused
    assert told == "no driver works on the study: the next one sees to it"
    assert (asked.kind, asked.content["why"], revisions) == (RequestKind.REVISE, "more data", [])


def test_a_database_that_is_not_there_is_told_before_anything_is_served(run, tmp_path):
    said = run("mcp", "--storage", f"sqlite:///{tmp_path}/none.db")
    assert said.code == 2
    assert "there is no study database" in said.err
    assert said.out == ""


def _changes(study, requests=()):
    return Changes(study=study, requests=list(requests))
