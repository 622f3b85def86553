"""Recognises the address of a broker where a file is expected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5}")


def looks_like_address(name: str) -> bool:
    """Return whether an input is not a file but has the form HOST:PORT."""
    return ADDRESS.fullmatch(name) is not None and not Path(name).exists()


def cluster_hint(path: Path) -> str:
    """Return which verb reads from a cluster, for the error of a missing file; "" for others."""
    if not looks_like_address(str(path)):
        return ""
    return f"; for a live cluster, see kafkawire cluster {path}"
