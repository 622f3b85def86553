"""What can go wrong in a Spark job, apart from what a capture contains.

Law: every text that leaves a worker is ASCII; anything else can make Spark hang instead of fail.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from ..errors import KafkaWireError

P = ParamSpec("P")
T = TypeVar("T")


class SparkError(KafkaWireError):
    """A job, or a part of it, cannot go on."""


class OutOfOrder(SparkError):
    """Spark gave packets to a task in another order than they were sorted in, or twice."""

    def __init__(self, kind: int, packet: int) -> None:
        super().__init__(kind, packet)
        self.kind = kind
        self.packet = packet

    def __str__(self) -> str:
        return f"packet {self.packet} (rows of kind {self.kind}) comes out of order"


class BadOption(SparkError, ValueError):
    """An option cannot be what was given."""

    def __init__(self, option: str, given: str, expected: str) -> None:
        super().__init__(option, given, expected)
        self.option, self.given, self.expected = option, given, expected

    def __str__(self) -> str:
        return f"option {self.option}: {self.given!r} is not {self.expected}"


class Unreadable(SparkError):
    """A file cannot be read as a capture, and the job was asked to fail then (`failOnError`)."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason)
        self.file, self.reason = file, reason

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


class NoCaptures(SparkError):
    """None of the inputs is a capture that can be read. first: what is wrong with the first."""

    def __init__(self, inputs: int, first: str) -> None:
        super().__init__(inputs, first)
        self.inputs, self.first = inputs, first

    def __str__(self) -> str:
        if self.inputs == 1:
            return self.first
        return f"no capture files among the {self.inputs} inputs; the first is {self.first}"


class NoJava(SparkError):
    """Spark cannot start for want of Java."""


class WorkerError(SparkError):
    """An exception of a worker, as text."""


class JobFailed(SparkError):
    """Spark, or a worker, gave up: what it said, in a line."""


EXCEPTION_LINE: Final = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*))?$", re.MULTILINE)
"""A line of a trace that names an exception; the others are indented."""

JAVA_MESSAGE: Final = re.compile(r"^: (?:[\w.$]+: )?(.+)$", re.MULTILINE)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Raise JobFailed for what Spark raises, where a line says it all: a worker's error that is
    ours or the system's, and what kept Spark from going on. Others stay, with their traces: whoever
    mends them needs those.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        line = _one_line(str(error))
        if line is None:
            raise
        raise JobFailed(line) from error


def _one_line(text: str) -> str | None:
    _, traced, trace = text.partition("Traceback (most recent call last):\n")
    if not traced:
        java = JAVA_MESSAGE.search(text)
        return java[1] if java else next(iter(text.strip().splitlines()), "Spark gave up")
    *_, (name, message) = EXCEPTION_LINE.findall(trace) or [("", "")]
    system = getattr(builtins, name, None)
    ours = name.startswith(f"{__name__}.")
    known = ours or (isinstance(system, type) and issubclass(system, OSError))
    return message if known else None


@contextmanager
def in_ascii() -> Iterator[None]:
    """Raise nothing but what Spark's workers can report: an exception whose text holds a lone
    surrogate kills the worker while it reports, and the job hangs.
    """
    try:
        yield
    except (GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
        if text.isascii():
            raise
        raise WorkerError(text.encode("ascii", "backslashreplace").decode("ascii")) from None


def ascii_safe(function: Callable[P, Iterable[T]]) -> Callable[P, Iterator[T]]:
    """Make a generator function raise as in `in_ascii`."""

    @wraps(function)
    def safe(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        with in_ascii():
            yield from function(*args, **kwargs)

    return safe
