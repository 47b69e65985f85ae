"""Proof that LangGraph Server runs on cpstore: its development server, on each driver.

    python -m tests.prove_server

nox runs it, with `langgraph-cli[inmem]`. It needs neither a licence nor a network. The server keeps its own
records in memory, and the checkpoints where `checkpointer.path` says: in a database of ours.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from sqlalchemy import URL, NullPool, create_engine, text

from tests.postgres import server, temporary_database

if TYPE_CHECKING:
    from collections.abc import Iterator

GRAPH = """
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph

State = TypedDict("State", {"words": Annotated[list, operator.add]})


async def echo(state):
    return {"words": [state["words"][-1].upper()]}


graph = StateGraph(State).add_node(echo).add_edge(START, "echo").add_edge("echo", END).compile()
"""

CONFIG = {
    "dependencies": ["."],
    "graphs": {"agent": "./graph.py:graph"},
    "checkpointer": {"path": "cpstore.server.checkpointer"},
}

DRIVERS = ("sqlite", "sqlite+aiosqlite", "postgresql", "postgresql+asyncpg")

SECONDS = 60


class Client:
    """The server's HTTP interface."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(self._base + path, data, headers, method=method)  # noqa: S310 - our own server
        with urlopen(request, timeout=SECONDS) as response:  # noqa: S310 - our own server
            answer = response.read()
        return json.loads(answer) if answer else None

    def run(self, thread: str, words: list[str], **options: Any) -> list[str]:
        """Run the graph to its end and give its words."""
        body = {"assistant_id": "agent", "input": {"words": words}, **options}
        return list(self("POST", f"/threads/{thread}/runs/wait", body)["words"])

    def words(self, thread: str) -> list[str]:
        """The words of a thread's newest checkpoint."""
        return list(self("GET", f"/threads/{thread}/state")["values"]["words"])


@contextmanager
def serving(
    folder: Path, environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Client, Path]]:
    """The development server on a free port, with its log; it is asked to end, as by Ctrl-C."""
    (folder / "graph.py").write_text(GRAPH)
    (folder / "langgraph.json").write_text(json.dumps(CONFIG))
    log = folder / "server.log"
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "langgraph_cli",
        "dev",
        "--no-browser",
        "--no-reload",
        "--port",
        str(port),
    ]
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **quiet, **environment}, stdout=output, stderr=output
        )
        try:
            yield process, Client(port), log
        finally:
            process.terminate()
            process.wait(SECONDS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(process: subprocess.Popen[bytes], client: Client, log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            client("GET", "/ok")
        except OSError:
            ended = process.poll() is not None or time.monotonic() > deadline
            assert not ended, log.read_text()
            time.sleep(0.2)
        else:
            return


def prove(url: URL) -> None:
    """Let the server do all that it does with a checkpointer."""
    with TemporaryDirectory() as folder:
        environment = {"CPSTORE_DATABASE_URL": url.render_as_string(hide_password=False)}
        with serving(Path(folder), environment) as (process, client, log):
            wait_for(process, client, log)
            assert "Using custom checkpointer: SQLAlchemySaver" in log.read_text()
            use(client, url)
            assert "BlockingError" not in log.read_text()


def use(client: Client, url: URL) -> None:
    thread = client("POST", "/threads", {})["thread_id"]
    assert client.run(thread, ["a"]) == ["a", "A"]
    assert client.run(thread, ["b"]) == ["a", "A", "b", "B"]
    history = client("GET", f"/threads/{thread}/history?limit=10")
    assert (len(history), rows(url, thread)) == (6, 6), (history, rows(url, thread))
    client("POST", f"/threads/{thread}/state", {"values": {"words": ["c"]}})
    assert client.words(thread) == ["a", "A", "b", "B", "c"]
    copy = client("POST", f"/threads/{thread}/copy")["thread_id"]
    assert client.words(copy) == ["a", "A", "b", "B", "c"]
    earlier = history[2]["checkpoint"]["checkpoint_id"]
    assert client.run(thread, ["fork"], checkpoint_id=earlier) == ["a", "A", "fork", "FORK"]
    client("POST", f"/threads/{thread}/runs", {"assistant_id": "agent", "input": {"words": ["undone"]}})
    kept = client.run(thread, ["d"], multitask_strategy="rollback")
    assert kept == ["a", "A", "fork", "FORK", "d", "D"]
    assert client("POST", "/threads/prune", {"thread_ids": [copy], "strategy": "delete"}) == {
        "pruned_count": 1
    }
    client("DELETE", f"/threads/{thread}")
    assert rows(url, thread) == rows(url, copy) == 0


def rows(url: URL, thread: str) -> int:
    """The checkpoints of a thread in the database itself."""
    named = url.set(drivername="postgresql+psycopg" if url.get_backend_name() == "postgresql" else "sqlite")
    engine = create_engine(named, poolclass=NullPool)
    with engine.connect() as connection:
        counted = text("SELECT count(*) FROM checkpoints WHERE thread_id = :thread")
        return int(connection.execute(counted, {"thread": thread}).scalar_one())


def prove_that_a_missing_url_is_named() -> None:
    with (
        TemporaryDirectory() as folder,
        serving(Path(folder), {"CPSTORE_DATABASE_URL": ""}) as (_process, _client, log),
    ):
        deadline = time.monotonic() + SECONDS
        while "CPSTORE_DATABASE_URL is not set" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)


def main() -> None:
    prove_that_a_missing_url_is_named()
    with server() as postgres:
        for driver in DRIVERS:
            if driver.startswith("sqlite"):
                with TemporaryDirectory() as folder:
                    prove(URL.create(driver, database=f"{folder}/chat.db"))
            else:
                with temporary_database(postgres.url) as url:
                    prove(url.set(drivername=driver))
            print(f"LangGraph Server ran on {driver}")  # noqa: T201 - for whom runs it


if __name__ == "__main__":
    main()
