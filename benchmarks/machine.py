"""What the figures depend on besides the code: the machine, the versions, the server."""

from __future__ import annotations

import datetime as dt
import os
import platform
import sqlite3
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bench import Bench
from benchmarks.databases import facts_of
from benchmarks.workloads import SEED

PACKAGES = (
    "cpstore",
    "sqlalchemy",
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-postgres",
    "langgraph-checkpoint-sqlite",
    "psycopg",
    "asyncpg",
    "aiosqlite",
    "ormsgpack",
)
PAGE = bytes(8192)


def facts(bench: Bench) -> dict[str, Any]:
    """All of it; the server's part only if it was used."""
    server = facts_of(bench.databases.server) if "server" in vars(bench.databases) else None
    return {
        "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
        "quick": bench.quick,
        "seed": SEED,
        "cpus": os.cpu_count(),
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "postgresql": server,
        "sqlite": sqlite3.sqlite_version,
        "microseconds of an fsync": round(fsync(bench.databases.folder)),
    }


def fsync(folder: Path) -> float:
    """What it takes here to write a page and wait for the disk: every commit waits so at least once."""
    times = []
    with (folder / "fsync").open("wb") as file:
        for _ in range(50):
            began = time.perf_counter()
            file.write(PAGE)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return median(times) * 1e6
