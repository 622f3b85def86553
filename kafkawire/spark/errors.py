"""Errors of Spark jobs, apart from problems in the content of captures.

Every text that leaves a worker is ASCII; anything else can make Spark hang instead of fail.
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
    """A job, or a part of it, failed."""


class OutOfOrder(SparkError):
    """A task received packets out of order, or twice."""

    def __init__(self, kind: int, packet: int) -> None:
        super().__init__(kind, packet)
        self.kind = kind
        self.packet = packet

    def __str__(self) -> str:
        return f"packet {self.packet} (rows of kind {self.kind}) is out of order"


class BadOption(SparkError, ValueError):
    """An option has an invalid value, or is unknown."""

    def __init__(self, option: str, given: str, expected: str) -> None:
        super().__init__(option, given, expected)
        self.option, self.given, self.expected = option, given, expected

    def __str__(self) -> str:
        return f"option {self.option}: invalid value {self.given!r}: expected {self.expected}"


class UnknownOption(BadOption):
    """An option does not exist. expected: similar options, or all."""

    def __str__(self) -> str:
        return f"unknown option {self.given!r}: expected {self.expected}"


class InvalidFilter(BadOption):
    """The filter of the option `where` is invalid. expected: what is wrong with it."""

    def __str__(self) -> str:
        return f"option {self.option}: {self.expected}, in {self.given!r}"


class Unreadable(SparkError):
    """A file is missing, damaged or not a capture, and `failOnError` is set."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason)
        self.file, self.reason = file, reason

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


class NoCaptures(SparkError):
    """None of the inputs is a readable capture. first: the problem of the first input."""

    def __init__(self, inputs: int, first: str) -> None:
        super().__init__(inputs, first)
        self.inputs, self.first = inputs, first

    def __str__(self) -> str:
        if self.inputs == 1:
            return self.first
        return f"no capture files among the {self.inputs} inputs; the first is {self.first}"


class UnsupportedSpark(SparkError):
    """The version of Spark is not supported."""

    def __init__(self, version: str, expected: str) -> None:
        super().__init__(version, expected)
        self.version, self.expected = version, expected

    def __str__(self) -> str:
        return (
            f"Spark {self.version} is not supported: expected {self.expected} "
            "(pip install 'kafkawire[spark]')"
        )


class MissingColumns(SparkError, ValueError):
    """A frame lacks columns that are needed. columns: their names, in order."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        super().__init__(columns)
        self.columns = columns

    def __str__(self) -> str:
        return f"the frame lacks the columns {', '.join(self.columns)} of the table records"


class NotStreamed(SparkError):
    """The data source does not read streams."""

    def __str__(self) -> str:
        return (
            "kafkapcap does not read streams: use `kafkawire spark --watch`, or a stream that "
            "lists files with kafkawire.spark.watch.Watcher.take_frame (docs/spark.md)"
        )


class NoJava(SparkError):
    """Spark cannot start because Java is missing or too old."""


class DamagedCheckpoint(SparkError):
    """The state of a watch cannot be read. reason: with its byte."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the checkpoint of the watch (_watch/state) is damaged: {self.reason}"


class WorkerError(SparkError):
    """An exception of a worker, as text."""


class JobFailed(SparkError):
    """Spark or a worker failed; the message is one line."""


EXCEPTION_LINE: Final = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*))?$", re.MULTILINE)
"""A line of a traceback that names an exception; other lines are indented."""

JAVA_MESSAGE: Final = re.compile(r"^: (?:[\w.$]+: )?(.+)$", re.MULTILINE)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Raise JobFailed for exceptions of Spark that one line explains.

    These are an error of this package or of the system in a worker, or the reason why Spark itself
    failed. Other exceptions keep their tracebacks, which are needed to debug them.
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
        return java[1] if java else next(iter(text.strip().splitlines()), "Spark failed")
    *_, (name, message) = EXCEPTION_LINE.findall(trace) or [("", "")]
    system = getattr(builtins, name, None)
    ours = name.startswith(f"{__name__}.")
    has_message = ours or (isinstance(system, type) and issubclass(system, OSError))
    return message if has_message else None


@contextmanager
def in_ascii() -> Iterator[None]:
    """Raise only what Spark's workers can report: exceptions without lone surrogates.

    A lone surrogate in the text of an exception kills the worker while it reports, and the job
    hangs.
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
    """Decorate a generator function so that it raises as in `in_ascii`."""

    @wraps(function)
    def safe(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        with in_ascii():
            yield from function(*args, **kwargs)

    return safe
