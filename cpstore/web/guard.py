"""What stands between the pages and everybody else: who may ask, and what a browser may do with an answer."""

from __future__ import annotations

import secrets
from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard"]

_HOSTS = {"127.0.0.1", "localhost", "[::1]"}

_HEADERS = {
    # No script at all, and nothing of another site: a stored text that looks like markup can do nothing.
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Lets only who knows the token in, and only to read.

    The token is the first part of every path. Whoever does not have it learns nothing, not even that it is
    missing. A page of another site that lets its own name point here is told apart by the host it asks for.

    Args:
        app: What is behind it; it sees paths without the token.
        token: The token.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, _with_headers(send))
            return
        await self._app(self._inner(scope), receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        host = Headers(scope=scope).get("host", "").rpartition(":")
        if (host[0] or host[2]) not in _HOSTS:
            return PlainTextResponse("This page is for this machine only", 400)
        if not self._knows_token(scope["path"]):
            return PlainTextResponse("Not found", 404)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("This page only reads", 405)
        return None

    def _knows_token(self, path: str) -> bool:
        given = path.split("/", 2)
        return len(given) == 3 and secrets.compare_digest(given[1].encode(), self._token.encode())

    def _inner(self, scope: Scope) -> MutableMapping[str, Any]:
        root = f"/{self._token}"
        return {**scope, "root_path": root}


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
        await send(message)

    return sent
