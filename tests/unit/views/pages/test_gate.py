"""The gate before the dashboard: each way in, and each way that is refused."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

import pytest

pytest.importorskip("starlette")

from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from hpsearch.views.pages.gate import Gate

TOKEN = "correct-horse-battery"
ODD = 'ü; "%\\+&=#\u2603 token, with = odd; characters'
OWN = {"Authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True)
class Answer:
    """What the gate, or the application behind it, answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def cookie(self) -> str:
        """What a browser sends back."""
        return self.headers["Set-Cookie"].partition(";")[0]


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """What is guarded: it says what it was asked for."""
    said = f"{scope['path']}?{scope['query_string'].decode('latin-1')}"
    await PlainTextResponse(said)(scope, receive, send)


def ask(
    token: str | None,
    address: str = "/dashboard",
    method: str = "GET",
    host: str | None = "127.0.0.1:8080",
    port: int = 8080,
    headers: Mapping[str, str] | None = None,
    allow_changes: bool = True,
) -> Answer:
    """Send a request through the gate."""
    path, _, query = address.partition("?")
    named = {} if host is None else {"host": host}
    sent = {**named, **{name.lower(): value for name, value in (headers or {}).items()}}
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode("latin-1"),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
        "server": ("127.0.0.1", port),
    }
    said: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        said.append(message)

    asyncio.run(Gate(application, token, allow_changes=allow_changes)(scope, receive, send))
    begin, *rest = said
    given = {
        name.decode("latin-1").title(): value.decode("latin-1") for name, value in begin["headers"]
    }
    return Answer(begin["status"], given, b"".join(each["body"] for each in rest))


@pytest.mark.parametrize("token", [TOKEN, ODD])
def test_the_link_leaves_a_cookie_and_its_token_out_of_the_address(token):
    link = ask(token, f"/dashboard/studies/3?token={quote(token, safe='')}")
    assert link.status == 303
    assert link.headers["Location"] == "/dashboard/studies/3"
    assert link.headers["Cache-Control"] == "no-store"
    _, *limits = link.headers["Set-Cookie"].split("; ")
    assert sorted(limits) == ["HttpOnly", "Path=/", "SameSite=strict"]
    page = ask(token, "/dashboard/studies/3", headers={"Cookie": link.cookie})
    assert (page.status, page.body) == (200, b"/dashboard/studies/3?")


def test_a_link_keeps_the_rest_of_its_address():
    link = ask(TOKEN, f"/dashboard/st\u00fc\u00df?numbers=1&token={TOKEN}&q=a%20b")
    assert link.headers["Location"] == "/dashboard/st%C3%BC%C3%9F?numbers=1&q=a%20b"


@pytest.mark.parametrize(
    "path", ["//evil.example/", "/\\evil.example/", "///evil.example", "/\r\nX: y"]
)
def test_a_link_leads_to_no_other_host_and_into_no_other_header(path):
    location = ask(TOKEN, f"{path}?token={TOKEN}").headers["Location"]
    assert location[0] == "/"
    assert location[1:2] not in ("/", "\\")
    assert location.isprintable()


def test_the_cookie_without_the_token_is_found_among_others_also_malformed_ones():
    assert TOKEN not in ask(TOKEN, f"/?token={TOKEN}").cookie
    cookie = ask(TOKEN, f"/?token={TOKEN}").cookie
    for others in (
        f"theme=dark; {cookie}",
        f'a="b; {cookie}; =; x',
        f";;{cookie};",
        f"a=\u00e9; {cookie}",
    ):
        assert ask(TOKEN, headers={"Cookie": others}).status == 200, others


def test_two_dashboards_on_one_host_keep_their_cookies_apart():
    names = {
        ask(TOKEN, f"/?token={TOKEN}", port=port).cookie.partition("=")[0] for port in (8080, 8081)
    }
    assert len(names) == 2


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_program_is_let_in_with_the_token_in_its_header(scheme):
    assert ask(TOKEN, "/api/studies", headers={"Authorization": f"{scheme} {TOKEN}"}).status == 200


def test_a_header_may_hold_any_character_of_a_token_and_it_serves_any_host_name():
    assert (
        ask(ODD, headers={"Authorization": "Bearer " + ODD.encode().decode("latin-1")}).status
        == 200
    )
    for host in ("lab.example:8080", "10.0.0.7", None):
        assert ask(TOKEN, host=host, headers=OWN).status == 200, host


@pytest.mark.parametrize(
    "query",
    [
        "",
        "token=",
        "token",
        f"token={TOKEN}x",
        f"token={TOKEN[:-1]}",
        f"TOKEN={TOKEN}",
        "token=%ff%fe",
        "token=\u00fc",
    ],
)
def test_a_wrong_token_in_the_address_is_refused(query):
    assert ask(TOKEN, f"/dashboard?{query}").status == 401


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN.upper()}",
        "B\u00fc",
    ],
)
def test_a_wrong_header_is_refused(given):
    assert ask(TOKEN, headers={"Authorization": given}).status == 401


def test_a_wrong_cookie_and_that_of_another_token_are_refused_and_the_link_lets_in_no_change():
    name, _, value = ask(TOKEN, f"/?token={TOKEN}").cookie.partition("=")
    for cookie in (
        f"{name}={TOKEN}",
        f"{name}=",
        name,
        f"{name}={value[:-1]}",
        f"x{name}={value}",
        f"{name}=\u00fc",
    ):
        assert ask(TOKEN, headers={"Cookie": cookie}).status == 401, cookie
    assert (
        ask(TOKEN, headers={"Cookie": ask(ODD, f"/?token={quote(ODD, safe='')}").cookie}).status
        == 401
    )
    assert ask(TOKEN, f"/api/studies?token={TOKEN}", "POST").status == 401


def test_who_is_refused_learns_how_to_get_in_and_nothing_else():
    refused = ask(TOKEN, "/api/studies")
    assert refused.status == 401
    assert refused.headers["Www-Authenticate"] == "Bearer"
    assert refused.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert b"the link that `hpsearch dashboard` printed" in refused.body.lower()
    assert TOKEN.encode() not in refused.body


LOOPBACK = "127.0.0.1 127.0.0.1:8080 127.8.9.10:1 localhost LocalHost:8080 [::1] [::1]:8080"
OTHERS = """\
evil.example evil.example:8080 localhost.evil.example 127.0.0.1.evil.example 10.0.0.7 0.0.0.0 \
[::] [fe80::1]:8080 [::1 ::1 [127.0.0.1]x evil.example@127.0.0.1 127.0.0.1/x 127.0.0.1:80:80 \
127.0.0.1:x [localhost]"""


@pytest.mark.parametrize("host", LOOPBACK.split())
def test_loopback_names_need_no_token(host):
    assert ask(None, host=host).status == 200


@pytest.mark.parametrize("host", [*OTHERS.split(), "127.0.0.1, evil.example", "", " ", None])
def test_a_name_that_was_lent_to_this_machine_is_refused(host):
    refused = ask(None, "/api/studies", host=host)
    assert refused.status == 403
    assert b"hpsearch dashboard --host" in refused.body


@pytest.mark.parametrize("token", [None, TOKEN])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_changes_come_from_the_dashboards_own_pages_alone(method, token):
    assert (
        ask(token, method=method, headers={"Origin": "http://127.0.0.1:8080", **OWN}).status == 200
    )
    assert ask(token, method=method, headers=OWN).status == 200, "programs name no origin"
    foreign = [
        *("null", "", "http://evil.example", "http://127.0.0.1"),
        *("http://127.0.0.1:8081", "http://localhost:8080"),
    ]
    for origin in [
        *foreign,
        "ftp://127.0.0.1:8080",
        "http://127.0.0.1:8080.evil.example",
        "127.0.0.1:8080",
    ]:
        assert ask(token, method=method, headers={"Origin": origin, **OWN}).status == 403, origin


def test_a_page_of_another_site_is_known_by_what_the_browser_says_of_it():
    for site, status in (
        ("same-origin", 200),
        ("none", 200),
        ("same-site", 403),
        ("cross-site", 403),
    ):
        headers = {"Sec-Fetch-Site": site, **OWN}
        assert ask(TOKEN, method="POST", headers=headers).status == status, site


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "CONNECT", "get"])
def test_without_leave_to_change_only_reading_is_answered(method):
    refused = ask(TOKEN, method=method, headers=OWN, allow_changes=False)
    assert refused.status == 403
    assert b"hpsearch dashboard --allow-changes" in refused.body
    for reading in ("GET", "HEAD", "OPTIONS"):
        assert ask(TOKEN, method=reading, headers=OWN, allow_changes=False).status == 200


def test_a_proxy_with_tls_may_stand_in_front():
    for origin, status in (("https://lab.example", 200), ("https://lab.example:444", 403)):
        sent = ask(TOKEN, method="POST", host="lab.example", headers={"Origin": origin, **OWN})
        assert sent.status == status, origin


@pytest.mark.parametrize("address", ["/dashboard", "/api/studies"])
def test_every_answer_keeps_other_origins_and_foreign_scripts_out(address):
    link, refused = ask(TOKEN, f"{address}?token={TOKEN}"), ask(TOKEN, address)
    for answer in (ask(None, address), link, refused, ask(None, address, host="evil.example")):
        policy = dict(
            each.split(maxsplit=1) for each in answer.headers["Content-Security-Policy"].split("; ")
        )
        assert policy["script-src"] == "'self'", "no inline scripts, no handlers of events"
        assert policy["form-action"] == "'self'"
        none = [policy[each] for each in ("default-src", "base-uri", "frame-ancestors")]
        assert none == ["'none'"] * 3
        assert "object-src" not in policy, "as default-src"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert not any(name.startswith("Access-Control-") for name in answer.headers)
