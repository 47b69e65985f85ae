"""The pages, and what is asked of the saver for each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from sqlalchemy.exc import DBAPIError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from cpstore.errors import CpstoreError
from cpstore.saver import SQLAlchemySaver
from cpstore.web import pages
from cpstore.web.guard import Guard
from cpstore.web.links import end, link

__all__ = ["application", "environment"]

Page = Callable[[SQLAlchemySaver, Any], Awaitable[dict[str, Any]]]


def application(saver: SQLAlchemySaver, token: str, *, database: str = "") -> ASGIApp:
    """Give the ASGI application of the pages.

    Args:
        saver: It only reads, and its serializer is a :class:`~cpstore.PlainSerializer`.
        token: The first part of every path: who does not know it is not let in.
        database: What the pages call the database, for people.
    """
    templates = environment(partial(link, f"/{token}/"), database)
    routes = [
        Route("/style.css", _style),
        *(Route(path, partial(_shown, templates, saver, name, page)) for path, name, page in _PAGES),
    ]
    handlers: Any = {HTTPException: partial(_http_error, templates)}
    handlers |= {kind: partial(_error, templates) for kind in (CpstoreError, DBAPIError)}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token)


_PAGES: tuple[tuple[str, str, Page], ...] = (
    ("/", "threads.html", pages.threads),
    ("/thread", "thread.html", pages.thread),
    ("/checkpoint", "checkpoint.html", pages.checkpoint),
    ("/diff", "diff.html", pages.difference),
    ("/storage", "storage.html", pages.storage),
)


def environment(page: Callable[..., str], database: str, *, enable_async: bool = False) -> Environment:
    """Give the templates: all that is put into them is escaped, and what is missing is an error."""
    made = Environment(
        loader=PackageLoader("cpstore.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        enable_async=enable_async,
    )
    made.globals.update(page=page, database=database, end=end)
    made.filters.update(number="{:,}".format, moment=_moment)
    return made


def _moment(time: str | None) -> str:
    """Give a time in UTC as people read it, to the millisecond."""
    return "?" if time is None else f"{time[:10]} {time[11:23]}"


async def _shown(
    templates: Environment, saver: SQLAlchemySaver, name: str, page: Page, request: Request
) -> Response:
    found = await page(saver, request.query_params)
    return HTMLResponse(_encoded(templates.get_template(name).render(found)))


def _encoded(text: str) -> bytes:
    """Halves of characters are stored, and no encoding has them: they are shown as escapes."""
    return text.encode("utf-8", "backslashreplace")


async def _style(_request: Request) -> Response:
    text = files("cpstore.web").joinpath("style.css").read_text("utf-8")
    return Response(text, media_type="text/css")


async def _error(templates: Environment, _request: Request, error: Exception) -> Response:
    """Say what a saver's error says: its message is for people, and names no value."""
    if isinstance(error, CpstoreError):
        told = str(error)
    else:
        told = (str(getattr(error, "orig", error)).splitlines() or [type(error).__name__])[0]
    return _told(templates, "This could not be read", told, 503)


async def _http_error(templates: Environment, _request: Request, error: HTTPException) -> Response:
    return _told(
        templates, "Not found" if error.status_code == 404 else "Not shown", error.detail, error.status_code
    )


def _told(templates: Environment, title: str, message: str, status: int) -> Response:
    text = templates.get_template("error.html").render(title=title, message=message)
    return HTMLResponse(_encoded(text), status)
