"""What commands print, as it was looked at. `CPSTORE_GOLDEN=write` writes it anew, to be looked at again."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent


def same_as_golden(name: str, found: str) -> None:
    """Compare an output with the file of this name."""
    file = FOLDER / name
    if os.environ.get("CPSTORE_GOLDEN") == "write":
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8")
