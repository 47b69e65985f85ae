"""Python programs in processes of their own, which start together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run_together(number: int, program: str, *arguments: str) -> None:
    """Run a program in so many processes at once; each has to succeed, without a warning."""
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(number)
    ]
    for process in started:
        _, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
