"""Counts calls of Python functions: work that depends on the code alone, not on the machine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import CodeType, FrameType


def functions_called(work: Callable[[], object]) -> list[CodeType]:
    """Return the functions of Python that some work calls or resumes, in order."""
    functions: list[CodeType] = []

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            functions.append(frame.f_code)

    before = sys.getprofile()
    was_enabled = gc.isenabled()
    gc.disable()  # its callbacks are calls, too
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
        if was_enabled:
            gc.enable()
    return functions


def calls(work: Callable[[], object]) -> int:
    """Return how many functions of Python some work calls or resumes."""
    return len(functions_called(work))


def names_called(work: Callable[[], object]) -> set[str]:
    """Return the names of the functions of Python that some work calls or resumes."""
    return {each.co_name for each in functions_called(work)}
