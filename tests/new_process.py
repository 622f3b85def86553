"""Calls functions in a new process: measurements of memory that no other test can change.

A process that has run other tests may have threads and caches of theirs, whose memory counts.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

R = TypeVar("R")


def in_new_process(function: Callable[..., R], calls: Sequence[tuple[Any, ...]]) -> list[R]:
    """Call a function of a module once for each tuple of arguments; return the results."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return list(process.map(function, *zip(*calls, strict=True)))
