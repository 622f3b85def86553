"""Output into a pipe whose reader may leave early, as `head` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def until_the_reader_leaves() -> Iterator[None]:
    """Print inside; a reader that has seen enough ends the command quietly, with exit code 0."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # what is still buffered has nowhere to go: keep the interpreter from trying again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
