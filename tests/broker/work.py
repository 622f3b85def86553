"""Counts work: calls of functions, steps of generators and lines that run, so loops too."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """Return how many calls and lines of Python a function runs (not those of compiled modules).

    The cyclic GC is off meanwhile: it calls what others, such as Hypothesis, have registered.
    """
    count = 0

    def counted(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        count += event in ("call", "line")
        return counted

    collecting = gc.isenabled()
    gc.disable()
    before = sys.gettrace()
    sys.settrace(counted)
    try:
        work()
    finally:
        sys.settrace(before)
        if collecting:
            gc.enable()
    return count
