"""Pictures of the pages for the documentation: `python -m tests.screenshots docs/images`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Interrupt

from cpstore import SQLAlchemySaver
from tests import browser
from tests.looked_at import id_of, put
from tests.test_browser import served

if TYPE_CHECKING:
    from playwright.sync_api import Page

TRIP = "trip to Oslo"
CALL: Any = {"name": "timetable", "args": {"from": "Bern", "to": "Oslo"}, "id": "c1"}
TALK = [
    HumanMessage("When does the next train to Oslo leave?", id="h1"),
    AIMessage("Let me look at the timetable.", id="a1", tool_calls=[CALL]),
    ToolMessage("07:32, by Hamburg and Copenhagen", id="t1", tool_call_id="c1"),
    AIMessage("At 07:32, by Hamburg and Copenhagen. Shall I book two seats?", id="a2"),
    HumanMessage("Yes, by the window.", id="h2"),
]
SEATS = {"class": 2, "seats": ["41 A", "41 C"], "price": {"amount": 238.0, "currency": "EUR"}}


def tell(saver: SQLAlchemySaver) -> None:
    """A talk that was interrupted, gone on with, and forked; and other threads."""
    put(saver, 0x10, None, {"messages": TALK[:1]}, thread_id=TRIP, source="input", step=-1)
    put(saver, 0x20, 0x10, {"messages": TALK[:2]}, thread_id=TRIP, source="loop", step=0)
    put(saver, 0x21, None, {"query": "Bern to Oslo"}, thread_id=TRIP, namespace="timetable:7f",
        source="input", step=-1, parents={"": id_of(0x20)})  # fmt: skip
    put(saver, 0x22, 0x21, {"query": "Bern to Oslo", "hits": ["07:32", "09:32"]}, thread_id=TRIP,
        namespace="timetable:7f", source="loop", step=0, parents={"": id_of(0x20)})  # fmt: skip
    at = put(saver, 0x30, 0x20, {"messages": TALK[:4], "offer": SEATS}, thread_id=TRIP, source="loop", step=1)
    saver.put_writes(at, [("__interrupt__", (Interrupt("Book two seats for 238 EUR?", id="i1"),))], "ask")
    put(saver, 0x40, 0x30, {"messages": TALK, "offer": SEATS, "booked": True}, thread_id=TRIP,
        new=["messages", "booked"], versions={"offer": 0x30}, source="loop", step=2)  # fmt: skip
    cheaper = {**SEATS, "class": 1, "price": {"amount": 402.5, "currency": "EUR"}}
    put(saver, 0x50, 0x30, {"messages": TALK[:4], "offer": cheaper}, thread_id=TRIP, new=["offer"],
        versions={"messages": 0x30}, source="update", step=2)  # fmt: skip
    for number, name in enumerate(["order 1701", "order 1702", "weekly report"]):
        put(saver, 0x60 + number, None, {"text": "x" * 400 * (number + 1)}, thread_id=name, source="input")


def take(page: Page, address: str, folder: Path) -> None:
    """Go through the pages, and take a picture of each kind."""
    page.goto(address)
    page.evaluate("document.activeElement.blur()")
    page.screenshot(path=folder / "threads.png")
    page.click(f"text={TRIP}")
    page.screenshot(path=folder / "tree.png", full_page=True)
    page.click(f"table >> text={id_of(0x30)}")
    page.screenshot(path=folder / "state.png", full_page=True)
    page.goto(f"{address}diff?thread={TRIP}&a={id_of(0x40)}&b={id_of(0x50)}")
    page.screenshot(path=folder / "diff.png", full_page=True)


def main(folder: Path) -> None:
    """Take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, browser.running() as chromium:
        with SQLAlchemySaver.from_url(f"sqlite:///{place}/chat.db") as saver:
            saver.setup()
            tell(saver)
        with served("sqlite:///chat.db", place) as address:
            page = chromium.new_page(viewport={"width": 1100, "height": 420}, color_scheme="light")
            take(page, address, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
