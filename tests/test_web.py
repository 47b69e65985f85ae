"""The pages: what they show, to whom, and that what is stored is only shown."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from html import unescape
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.types import Interrupt
from sqlalchemy import insert

from cpstore import Checkpoint, PlainSerializer, SQLAlchemySaver, UnknownThreadError, engines
from cpstore.web import application, pages_of
from tests.looked_at import THREAD, id_of, put, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

TOKEN = "the-token"  # noqa: S105 - of these tests only
ROOT = f"/{TOKEN}/"
ODD = "a/b?c=d&e <b>é\"'"


@pytest.fixture
def reader(dialect_url: str) -> Iterator[SQLAlchemySaver]:
    made = engines.read_only(dialect_url)
    assert made.sync is not None
    yield SQLAlchemySaver(made.sync, serde=PlainSerializer())
    made.sync.dispose()


class Client:
    """Asks an application without a server in between, each time in an event loop of its own."""

    def __init__(self, saver: SQLAlchemySaver) -> None:
        app: Any = application(saver, TOKEN, database="the database")
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def answered() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport, base_url="http://127.0.0.1") as client:
                return await client.request(method, path, **options)

        return asyncio.run(answered())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)


@pytest.fixture
def client(reader: SQLAlchemySaver) -> Client:
    return Client(reader)


def file_of(saver: SQLAlchemySaver, thread_id: str = THREAD, **options: Any) -> str:
    """A thread as one HTML file."""

    async def joined() -> str:
        return "".join([part async for part in pages_of(saver, thread_id, **options)])

    return asyncio.run(joined())


def links(text: str, page: str) -> list[str]:
    return [unescape(each) for each in re.findall(r'href="([^"]+)"', text) if f"{ROOT}{page}?" in each]


def shown(client: Client, page: str, **asked: str) -> str:
    answer = client.get(ROOT + page, params=asked)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_threads_are_shown_with_their_activity_and_size(client: Client, keeper: SQLAlchemySaver) -> None:
    tell(keeper)
    text = shown(client, "")
    assert len(links(text, "thread")) == 3
    row = re.search(rf">{THREAD}</a>.*?</tr>", text, re.DOTALL)
    assert row is not None
    (taken,) = keeper.storage(thread_ids=[THREAD])
    assert f"{taken.bytes:,}</td>" in row[0]
    assert '<td class="number">7</td>' in row[0]
    assert "the database" in text


def test_threads_are_found_by_a_part_of_their_id(client: Client, keeper: SQLAlchemySaver) -> None:
    for number in range(60):
        put(keeper, number + 1, None, {"a": 1}, thread_id=f"user-{number % 2}-{number}")
    page = shown(client, "", q="user-1-")
    found = re.findall(r">(user-\d-\d+)</a>", page)
    assert len(found) == 25
    (more,) = [link for link in links(page, "") if "after=" in link]
    found += re.findall(r">(user-\d-\d+)</a>", client.get(more).text)
    assert found == [f"user-1-{number}" for number in range(59, 0, -2)]
    assert "No thread whose id contains “nobody”" in shown(client, "", q="nobody")


def test_without_threads_there_is_a_page(client: Client) -> None:
    assert "There are no threads" in shown(client, "")


def test_the_tree_of_a_thread_leads_to_its_checkpoints(client: Client, keeper: SQLAlchemySaver) -> None:
    tell(keeper)
    text = shown(client, "thread", thread=THREAD)
    graph = re.findall(r'<td class="graph"[^>]*>([^<]*)</td>', text)
    assert graph == ["●", "├─●", "●", "├─◇", "│ ◉", "●", "◉"]
    pages = [client.get(link) for link in links(text, "checkpoint")]
    assert {page.status_code for page in pages} == {200}
    assert len(pages) == 7 + 2
    assert text.count(">interrupted</span>") == 1
    assert text.count(">failed</span>") == 2  # in the tree, and where the newest are


def test_a_state_shows_messages_writes_and_interrupts(client: Client, keeper: SQLAlchemySaver) -> None:
    tell(keeper)
    text = shown(client, "checkpoint", thread=THREAD, id=id_of(5))
    assert text.count('class="message') == 3
    assert "word 2" in text
    assert "Book it?" in text
    assert "Interrupts" in text
    assert "Bern" in text


def test_a_difference_shows_what_was_appended_and_what_changed(
    client: Client, keeper: SQLAlchemySaver
) -> None:
    tell(keeper)
    page = shown(client, "checkpoint", thread=THREAD, id=id_of(7))
    (link,) = links(page, "diff")
    text = client.get(link).text
    assert "1 appended" in text
    assert text.count('class="message') == 1
    assert "word 3" in text
    assert '<section class="channel removed">' in text
    same = shown(client, "diff", thread=THREAD, a=id_of(7), b=id_of(7))
    assert "both have the same values" in same


def test_storage_is_shown_by_channel(client: Client, keeper: SQLAlchemySaver) -> None:
    tell(keeper)
    text = shown(client, "storage", thread=THREAD)
    (taken,) = keeper.storage(thread_ids=[THREAD])
    for channel in taken.channels:
        assert re.search(rf"<td>{channel.channel}</td>\s*<td[^>]*>{channel.blobs:,}</td>", text)


def test_what_is_stored_is_shown_and_never_run(
    client: Client, keeper: SQLAlchemySaver, reader: SQLAlchemySaver
) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'`{{ 7 * 7 }}"
    at = put(keeper, 1, None, {evil: [AIMessage(evil, id=evil, name=evil)], "dict": {evil: evil}}, x=evil)
    keeper.put_writes(at, [(evil, evil)], evil)
    put(keeper, 2, 1, {evil: evil}, thread_id=THREAD)
    pages = [
        shown(client, "", q=evil),
        shown(client, "thread", thread=THREAD),
        shown(client, "checkpoint", thread=THREAD, id=id_of(1)),
        shown(client, "diff", thread=THREAD, a=id_of(1), b=id_of(2)),
        shown(client, "storage", thread=THREAD),
        client.get(f"{ROOT}thread", params={"thread": evil}).text,
    ]
    for page in (*pages, file_of(reader)):
        assert "<script" not in page
        assert "<img" not in page
        assert evil in unescape(page)


@pytest.mark.parametrize("thread_id", [ODD, "%2F", "a+b", "..", "\x1b[2J", "日本語", " "])
def test_every_id_leads_to_its_page(client: Client, keeper: SQLAlchemySaver, thread_id: str) -> None:
    put(keeper, 1, None, {"a": ["x" * 99]}, thread_id=thread_id, namespace="node:1|inner/2")
    (thread,) = links(shown(client, ""), "thread")
    page = client.get(thread)
    found = [client.get(link) for link in (*links(page.text, "checkpoint"), *links(page.text, "storage"))]
    assert {each.status_code for each in (page, *found)} == {200}


def test_half_a_character_is_shown_as_an_escape(client: Client, keeper: SQLAlchemySaver) -> None:
    put(keeper, 1, None, {"a": "half \ud800 of it"})
    assert r"half \ud800 of it" in shown(client, "checkpoint", thread=THREAD, id=id_of(1))


class Sealed(SerializerProtocol):
    """Stores what only it can read."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "msgpack+aes", b"secret"

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise NotImplementedError


def test_values_that_nobody_can_read_are_named(client: Client, database: Engine) -> None:
    put(SQLAlchemySaver(database, serde=Sealed()), 1, None, {"a": [1]})
    assert "not shown: encrypted, 6 bytes" in shown(client, "checkpoint", thread=THREAD, id=id_of(1))


def test_a_value_that_is_long_or_deep_or_wide_is_shown_in_part(
    client: Client, keeper: SQLAlchemySaver
) -> None:
    deep: Any = "bottom"
    for _ in range(100):
        deep = [deep]
    values = {"long": "x" * 30_000, "wide": list(range(1000)), "deep": deep}
    put(keeper, 1, None, values)
    text = shown(client, "checkpoint", thread=THREAD, id=id_of(1))
    assert "and 10000 more characters" in text
    assert "and 800 more" in text
    assert "deeper than is shown" in text


CHECKPOINTS = 10_000


def test_a_thread_of_ten_thousand_checkpoints(client: Client, database: Engine) -> None:
    """One line of it: each hangs on the one before, so nothing may call itself for each of them."""
    rows = [
        {
            "thread_id": THREAD,
            "checkpoint_ns": "",
            "checkpoint_id": id_of(number),
            "parent_checkpoint_id": id_of(number - 1) if number else None,
            "checkpoint": '{"v": 4}',
            "metadata": f'{{"step": {number}}}',
        }
        for number in range(CHECKPOINTS)
    ]
    with database.begin() as connection:
        connection.execute(insert(Checkpoint), rows)
    text = shown(client, "thread", thread=THREAD)
    seen = re.findall(r'id="c-([^"]+)"', text)
    assert seen == [id_of(number) for number in range(CHECKPOINTS - 500, CHECKPOINTS)]
    while older := [link for link in links(text, "thread") if "end=" in link and 'rel="prev"' in text][:1]:
        text = client.get(older[0]).text
        seen = [*re.findall(r'id="c-([^"]+)"', text), *seen]
    assert seen == [id_of(number) for number in range(CHECKPOINTS)]


# Who is let in, and what a browser may do


@pytest.mark.parametrize(
    "path", ["/", "/thread", "/wrong/", "/style.css", f"/{TOKEN}", f"/{TOKEN}x/", f"//{TOKEN}/"]
)
def test_without_the_token_there_is_nothing(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.text) == (404, "Not found")


@pytest.mark.parametrize("host", ["example.org", "example.org:80", "127.0.0.1.example.org", ""])
def test_another_name_of_this_machine_is_refused(client: Client, host: str) -> None:
    assert client.get(ROOT, headers={"host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:8000"])
def test_this_machine_is_let_in(client: Client, host: str) -> None:
    assert client.get(ROOT, headers={"host": host}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_reading_is_allowed(client: Client, method: str) -> None:
    assert client.request(method, ROOT).status_code == 405


@pytest.mark.parametrize(
    ("page", "status"),
    [
        ("", 200),
        ("style.css", 200),
        ("nowhere", 404),
        ("thread", 400),
        ("thread?thread=unknown", 404),
        ("thread?thread=", 404),
        ("thread?thread=trip&end=x", 400),
        ("thread?thread=trip&end=-1", 400),
        ("checkpoint?thread=trip", 400),
        ("checkpoint?thread=trip&id=unknown", 404),
        ("checkpoint?thread=trip&id=", 404),
        ("diff?thread=trip&a=x", 400),
        ("diff?thread=trip&a=x&b=y", 404),
        ("storage?thread=unknown", 404),
        ("?after=nonsense", 400),
    ],
)
def test_every_answer_has_a_strict_policy(
    client: Client, keeper: SQLAlchemySaver, page: str, status: int
) -> None:
    tell(keeper)
    answer = client.get(ROOT + page)
    assert answer.status_code == status, answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self';")
    assert "unsafe" not in policy
    assert "script-src" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"


def test_a_database_without_tables_says_what_to_do(empty: Engine) -> None:
    saver = SQLAlchemySaver(empty, serde=PlainSerializer())
    answer = Client(saver).get(ROOT)
    assert answer.status_code == 503
    assert "upgrade" in answer.text


# As one file


def test_a_file_has_the_tree_the_changes_and_the_states(
    reader: SQLAlchemySaver, keeper: SQLAlchemySaver
) -> None:
    tell(keeper)
    text = file_of(reader)
    assert text.startswith("<!doctype html>")
    for number in range(1, 8):
        assert f'<details id="c-{id_of(number)}"' in text
        assert f'href="#c-{id_of(number)}"' in text
    assert text.count("<h2>State</h2>") == 2  # the newest one of each namespace
    assert "Book it?" in text
    assert "word 3" in text


def test_a_file_asks_for_nothing(reader: SQLAlchemySaver, keeper: SQLAlchemySaver) -> None:
    tell(keeper)
    text = file_of(reader)
    assert "default-src 'none'" in text
    assert not re.findall(r'(?:src|href|action)="(?!#)', text)
    assert "<link" not in text
    assert "<form" not in text


def test_a_long_thread_is_shown_in_part(reader: SQLAlchemySaver, keeper: SQLAlchemySaver) -> None:
    tell(keeper)
    text = file_of(reader, limit=2)
    assert text.count("<details id=") == 2
    assert "5 older checkpoints" in text


def test_a_redacted_file_has_no_value(reader: SQLAlchemySaver, keeper: SQLAlchemySaver) -> None:
    secret = "Rumpelstiltskin"  # noqa: S105 - it is looked for
    at = put(
        keeper,
        1,
        None,
        {
            "messages": [AIMessage(secret, id=secret, name=secret)],
            "dict": {secret: {secret: 8_675_309}},
            "text": secret,
            "number": 8_675_309,
            "bytes": secret.encode(),
        },
        thread_id=secret,
        source="loop",
        step=1,
        note=secret,
    )
    keeper.put_writes(at, [("text", secret), ("__interrupt__", (Interrupt(secret, id="i"),))], "task")
    put(keeper, 2, 1, {"text": secret, "other": "different text!"}, thread_id=secret, source="loop", step=2)
    text = file_of(reader, secret, redact=True)
    for hidden in (
        secret,
        secret.encode().hex(),
        b64encode(secret.encode()).decode(),
        "8675309",
        "8,675,309",
    ):
        assert hidden not in text
    assert "AIMessage" in text
    assert "15 characters" in text
    assert text != file_of(reader, secret, redact=True)  # its marks are made anew


def test_equal_values_have_equal_marks(reader: SQLAlchemySaver, keeper: SQLAlchemySaver) -> None:
    put(keeper, 1, None, {"a": "first text", "b": "first text", "c": "other text"})
    text = file_of(reader, redact=True)
    marks = re.findall(r"10 characters (#[0-9a-f]+)", text)
    assert len(set(marks)) == 2


def test_a_file_of_no_thread_is_an_error(reader: SQLAlchemySaver) -> None:
    with pytest.raises(UnknownThreadError):
        file_of(reader, "unknown")
