"""The pages in a real browser: seen, folded, gone through by keyboard; stored markup does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage
from playwright.sync_api import expect

from tests import browser
from tests.looked_at import SUBGRAPH, THREAD, id_of, put, tell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

    from cpstore import SQLAlchemySaver

pytestmark = pytest.mark.timeout(400)  # the first one may install the browser

EVIL = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser. Where none can be had these tests are not run, which is said; in CI they fail."""
    try:
        with browser.running() as found:
            yield found
    except browser.NoBrowserError as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


@contextmanager
def served(url: str, folder: str | None = None) -> Iterator[str]:
    """The address of the pages of a database, which another process serves."""
    command = [sys.executable, "-m", "cpstore", "web", "--url", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@pytest.fixture
def address(dialect_url: str, keeper: SQLAlchemySaver) -> Iterator[str]:
    tell(keeper)
    put(keeper, 20, 7, {"messages": [AIMessage(EVIL, id="m")], EVIL: {EVIL: EVIL}}, source="loop", step=3)
    with served(dialect_url) as found:
        yield found


class Heard(list[str]):
    """What a page complained of, and what it asked of others."""

    def listen(self, context: BrowserContext, address: str) -> None:
        context.on("console", lambda message: self.append(message.text))
        context.on("weberror", lambda error: self.append(str(error.error)))
        context.on("dialog", lambda dialog: self.append(dialog.message))
        context.on(
            "request",
            lambda asked: None if asked.url.startswith(address) else self.append(asked.url),
        )


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    """A page of its own; at its end nothing was said on the console, and nobody else was asked."""
    heard = Heard()
    context = chromium.new_context(viewport={"width": 1100, "height": 800}, color_scheme="light")
    heard.listen(context, address)
    yield context.new_page()
    context.close()
    assert heard == []


def test_from_the_threads_to_a_message(page: Page, address: str) -> None:
    page.goto(address)
    page.click(f"text={THREAD}")
    expect(page.locator("h1")).to_have_text(f"Thread {THREAD}")
    page.click(f"table >> text={id_of(5)}")
    expect(page.locator(".message.human").first).to_be_visible()
    expect(page.locator("text=Book it?").first).to_be_visible()
    page.click("text=what changed since")
    expect(page.locator(".message")).to_have_count(1)
    page.click("nav a")
    page.click("text=Storage by channel")
    expect(page.locator("table tbody tr").nth(1)).to_be_visible()


def test_stored_markup_is_text(page: Page, address: str) -> None:
    page.goto(f"{address}checkpoint?thread={THREAD}&id={id_of(20)}")
    expect(page.locator("main")).to_contain_text(EVIL)
    expect(page.locator("main script, main img")).to_have_count(0)
    expect(page).to_have_title(f"{id_of(20)} · cpstore")


def test_a_thread_is_searched_for(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("input[name=q]")).to_be_focused()
    page.keyboard.type("othe")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=othe")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody a")).to_have_text("other")


def test_all_is_reached_by_keyboard(page: Page, address: str) -> None:
    page.goto(f"{address}thread?thread={THREAD}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Storage by channel"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Checkpoint")


def test_data_folds_by_keyboard(page: Page, address: str) -> None:
    page.goto(f"{address}checkpoint?thread={THREAD}&id={id_of(5)}")
    folded = page.locator("details", has=page.locator("text=as data")).first
    assert folded.get_attribute("open") is None
    folded.locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(folded).to_have_attribute("open", "")
    expect(folded.locator("text=HumanMessage").first).to_be_visible()


def test_two_checkpoints_are_compared(page: Page, address: str) -> None:
    page.goto(f"{address}thread?thread={THREAD}")
    page.check(f"input[name=a][value^='{id_of(4)}/']")
    page.check(f"input[name=b][value^='{id_of(7)}/']")
    page.click("text=Compare the two")
    ends = page.locator("main p a")
    expect(ends).to_have_text([id_of(4), id_of(7)])
    assert SUBGRAPH.split(":")[0] in ends.nth(0).get_attribute("href")  # type: ignore[operator]
    expect(page.locator("section.added h3").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_in_light_and_dark(chromium: Browser, address: str, scheme: str) -> None:
    """The contrast of text is at least 4.5, as WCAG 2.1 asks for (1.4.3)."""
    context = chromium.new_context(color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{address}checkpoint?thread={THREAD}&id={id_of(5)}")
    grounds = {"body": "body", ".soft": "body", "main a": "body", ".message.human pre": ".message.human",
               ".message.ai .who": ".message.ai", ".mark": "body"}  # fmt: skip
    for text, ground in grounds.items():
        assert contrast(page, text, ground) >= 4.5, text
    dark = luminance(page, "body", "backgroundColor") < 0.5
    assert dark == (scheme == "dark")
    context.close()


def contrast(page: Page, text: str, ground: str) -> float:
    pair = luminance(page, text, "color"), luminance(page, ground, "backgroundColor")
    return (max(pair) + 0.05) / (min(pair) + 0.05)


def luminance(page: Page, selector: str, name: str) -> float:
    """The relative luminance of a colour, as WCAG defines it."""
    found: str = page.locator(selector).first.evaluate(f"each => getComputedStyle(each).{name}")
    channels = [int(each) / 255 for each in found.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_file_is_seen_without_a_server(
    chromium: Browser, keeper: SQLAlchemySaver, dialect_url: str, tmp_path: Path
) -> None:
    tell(keeper)
    put(keeper, 20, 7, {EVIL: [EVIL, {EVIL: EVIL}]}, source="loop", step=3)
    file = tmp_path / "thread.html"
    command = ["-m", "cpstore", "export", THREAD, "--html", "--url", dialect_url, "--output", str(file)]
    subprocess.run([sys.executable, *command], check=True)
    heard = Heard()
    context = chromium.new_context()
    heard.listen(context, file.as_uri())
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page).to_have_title(f"Thread {THREAD} · cpstore")
    expect(page.locator("main script, main img")).to_have_count(0)
    expect(page.locator("main")).to_contain_text(EVIL)
    page.click(f"table >> text={id_of(2)}")
    page.locator(f"[id='c-{id_of(2)}'] > summary").click()
    expect(page.locator(f"[id='c-{id_of(2)}'] .message").first).to_be_visible()
    context.close()
    assert heard == []
