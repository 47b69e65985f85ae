"""A PostgreSQL database that sorts text as a locale does, wherever one can be had.

Three makers are asked in this order, and the first whose database really sorts otherwise than by code point
is taken:

    icu        the session's server, where it was built with ICU
    libc       the session's server, where its machine has the locale en_US.UTF-8
    localedef  a server of our own, from the wheel's or the machine's programs, with a locale that glibc's
               compiler makes of the text below: no locale need be installed, and no sources of any
"""

from __future__ import annotations

import shutil
import string
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests import cluster, postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import URL

ICU = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'"
LIBC = "LOCALE 'en_US.UTF-8'"

NAME = "letters"
"""Our locale: letters sort whatever their case, and signs have no weight."""

CHARACTERS = """<code_set_name> UTF-8
<comment_char> %
<escape_char> /
<mb_cur_min> 1
<mb_cur_max> 6
CHARMAP
<U0000>..<U007F> /x00
<U00E9> /xc3/xa9
END CHARMAP
"""

SIGNS = "-~|:,. "
ORDER = [
    *(f"<U{ord(sign):04X}> IGNORE;IGNORE" for sign in SIGNS),
    *(f"<U{ord(digit):04X}>" for digit in string.digits),
    *(
        f"<U{ord(letter):04X}> <U{ord(low):04X}>;<{size}>"
        for low in string.ascii_lowercase
        for letter, size in ((low, "small"), (low.upper(), "capital"))
    ),
    "<U00E9>",
]
COLLATION = "\n".join(
    [
        "comment_char %",
        "escape_char /",
        "LC_COLLATE",
        "script <ALL>",
        "collating-symbol <small>",
        "collating-symbol <capital>",
        "order_start <ALL>;forward;forward",
        "<small>",
        "<capital>",
        *ORDER,
        "order_end",
        "END LC_COLLATE",
        "",
    ]
)


@dataclass(frozen=True)
class LocaleDatabase:
    """An empty database that sorts text as a locale does, and who made it."""

    maker: str
    url: URL


class NoLocaleError(Exception):
    """Nobody here can make a database that sorts as a locale does; the message says what each answered."""


@contextmanager
def locale_database(server: postgres.Server) -> Iterator[LocaleDatabase]:
    """The first maker's database; it is dropped at the end.

    Raises:
        NoLocaleError: there is none.
    """
    answers: list[str] = []
    with ExitStack() as stack:
        for maker, clause in {"icu": ICU, "libc": LIBC}.items():
            try:
                url = stack.enter_context(database(server.url, clause))
            except Exception as failure:  # a server without ICU, a machine without the locale
                answers.append(f"{maker}: {failure}")
                continue
            yield LocaleDatabase(f"{maker} of the session's server", url)
            return
        try:
            url = stack.enter_context(database_of_localedef())
        except Exception as failure:  # no glibc, no server's programs
            answers.append(f"localedef: {failure}")
        else:
            yield LocaleDatabase("a server of its own, with a locale from localedef", url)
            return
    raise NoLocaleError("\n".join(answers))


@contextmanager
def database(admin_url: URL, clause: str) -> Iterator[URL]:
    """A new database with a locale, dropped at the end.

    Raises:
        NoLocaleError: the server takes the locale and sorts by code point all the same, as musl makes it.
    """
    name = f"cpstore_{uuid4().hex}"
    try:
        postgres.execute(admin_url, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' {clause}")
        url = admin_url.set(database=name)
        if postgres.ask(url, "SELECT 'a' < 'B'") != "True":
            raise NoLocaleError("the locale is there, and sorts by code point")
        yield url
    finally:
        postgres.drop_database(admin_url, name)


@contextmanager
def database_of_localedef() -> Iterator[URL]:
    """A database with our locale, on a server of its own.

    Raises:
        NoLocaleError: the compiler, or a server's programs, are not there.
    """
    binaries = postgres.wheel_binaries() or postgres.system_binaries()
    if binaries is None:
        raise NoLocaleError("no programs of a server")
    with cluster.lent_directory(None) as directory, ExitStack() as stack:
        compile_locale(directory)
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("LOCPATH", str(directory))
            admin_url = stack.enter_context(cluster.running(binaries))
        yield stack.enter_context(database(admin_url, f"LOCALE '{NAME}'"))


def compile_locale(directory: Path) -> None:
    """Make our locale in a directory that LOCPATH may name.

    Raises:
        NoLocaleError: there is no compiler, or it made nothing.
    """
    program = shutil.which("localedef")
    if program is None:
        raise NoLocaleError("no localedef")
    (directory / "characters").write_text(CHARACTERS)
    (directory / "collation").write_text(COLLATION)
    # It warns that the locale has no month names and so on, and then its status is 1.
    command = [program, "--no-archive", "--force", "--inputfile=./collation", "--charmap=./characters"]
    made = subprocess.run(
        [*command, f"./{NAME}"], cwd=directory, capture_output=True, text=True, timeout=60, check=False
    )
    if not (directory / NAME / "LC_COLLATE").exists():
        raise NoLocaleError(made.stderr)
