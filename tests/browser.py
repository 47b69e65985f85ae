"""A real browser for the tests of the pages: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

MISSING = "no chromium here: install it (apt-get install chromium); root of a Debian gets it by itself"

QUIET = [
    # It asks for nothing of its own: the tests' machine may reach no other one.
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"),
    *("--disable-gpu", "--disable-quic"),
]


class NoBrowserError(Exception):
    """There is no Chromium, and none can be had; the message says what was tried."""


def program() -> str:
    """Where Chromium is; Debian's package is installed, if the tests run as root of a Debian without it.

    Raises:
        NoBrowserError: there is none.
    """
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        found = shutil.which("chromium")
    if found is None:
        raise NoBrowserError(MISSING)
    return found


def _install() -> None:
    for command in (
        ["apt-get", "update", "--quiet"],
        [
            "apt-get",
            "install",
            "--quiet",
            "--yes",
            "--no-install-recommends",
            "chromium",
            "fonts-dejavu-core",
        ],
    ):
        try:
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(command, check=True, capture_output=True, timeout=240, env=environment)
        except (OSError, subprocess.SubprocessError) as failure:
            raise NoBrowserError(f"{MISSING}\n{' '.join(command)} failed: {failure}") from failure


@contextmanager
def running() -> Iterator[Browser]:
    """A browser without a window.

    Raises:
        NoBrowserError: there is none.
    """
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has none for root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=[*QUIET, *sandbox])
        yield browser
        browser.close()
