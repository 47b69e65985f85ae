"""LangGraph's conformance kit: each of its checks on each way in, and its own report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from cpstore import SQLAlchemySaver
    from tests.ways import Way

    Check = Callable[[SQLAlchemySaver], Awaitable[None]]

KIT = "langgraph.checkpoint.conformance"

CAPABILITIES = (
    "put",
    "put_writes",
    "get_tuple",
    "list",
    "delete_thread",
    "delete_for_runs",
    "copy_thread",
    "prune",
)
"""All that the kit knows, as it names them."""


def checks() -> Iterator[Any]:
    """The kit's checks; never as names of this module, where pytest would collect them as they are."""
    for capability in CAPABILITIES:
        module = import_module(f"{KIT}.spec.test_{capability}")
        for check in getattr(module, f"ALL_{capability.upper()}_TESTS"):
            yield pytest.param(check, id=f"{capability}::{check.__name__}")


@pytest.mark.parametrize("check", [*checks()])
async def test_check(saver: SQLAlchemySaver, check: Check) -> None:
    await check(saver)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_kit_has_checks_for_each_capability(capability: str) -> None:
    assert any(parameters.id.startswith(f"{capability}::") for parameters in checks())


async def test_report(saver: SQLAlchemySaver, way: Way) -> None:
    async def factory() -> AsyncIterator[SQLAlchemySaver]:
        yield saver

    kit = import_module(KIT)
    registered = kit.checkpointer_test(name=way.name)(factory)
    report = await kit.validate(registered, capabilities=set(CAPABILITIES))
    passed = {name: result.passed for name, result in report.results.items() if name in CAPABILITIES}
    assert passed == dict.fromkeys(CAPABILITIES, True), report.to_dict()
