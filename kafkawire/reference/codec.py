"""Parses and builds any message of any version with its construct graph.

Slow, and independent of the generated code: it reads schemas, not modules. It knows the field
of every byte, which the fast codec does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from kafkawire_codegen.model import Message

from ..errors import DecodeError, TrailingBytes, UnsupportedVersion, counted
from ..primitives import DEFAULT_LIMITS, Deviations, Limits
from ..protocol.packages import OURS
from .graph import graph
from .pieces import NamedPiece
from .schemas import message_model
from .tree import Flaw, Node, Sink, Source

GRAPHS_KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of parsing, complete or up to an error.

    values: attribute -> value, structs as dicts; None if there is an error. tree: every decoded
    byte; a node that is not closed is incomplete. end: index of the first byte without a node.
    flaws: where the bytes differ from an encoder's; deviations: as in `Message`. package: the
    import name of the message's package.
    """

    name: str
    version: int
    data: bytes
    values: dict[str, Any] | None
    tree: Node
    end: int
    error: DecodeError | None
    flaws: tuple[Flaw, ...]
    deviations: Deviations | None
    package: str = OURS


def construct_of(name: str, version: int, package: str = OURS) -> NamedPiece:
    """Make the construct of a message at a version; UnknownApiKey, UnsupportedVersion."""
    return _construct(message_model(name, package), version)


@lru_cache(GRAPHS_KEPT)
def _construct(message: Message, version: int) -> NamedPiece:
    if version not in message.versions:
        raise UnsupportedVersion(f"{message.name} has versions {message.versions}, not {version}")
    return graph(message, version)


def parse(
    name: str,
    version: int,
    data: bytes,
    *,
    start: int = 0,
    lenient: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    whole: bool = True,
    package: str = OURS,
) -> Parsed:
    """Parse a message body that begins at `start`; a DecodeError is kept in the result.

    whole: whether the message must fill the rest of `data`. package: its package's import name.
    Raises UnknownApiKey, UnsupportedVersion.
    """
    construct = construct_of(name, version, package)
    source = Source(data, start, lenient=lenient, limits=limits)
    root = source.begin(name, name, name)
    values, error = None, None
    try:
        values = construct.piece.parse_stream(source)
        if whole and source.left and not lenient:
            reason = f"{counted(source.left, 'byte')} after the last field"
            raise source.fault(TrailingBytes, reason, source.tell())
        trailing = data[source.tell() :] if whole else b""
        source.finish(root, values)
    except DecodeError as stopped:
        # its traceback has frames that refer to it: reference cycles until the next cyclic GC
        values, error, trailing = None, stopped.with_traceback(None), b""
        error.__context__ = None
    end = root.end if root.closed else decoded_end(root)
    if trailing:
        source.flaws.append(
            Flaw(f"{counted(len(trailing), 'byte')} after the last field", name, end)
        )
    deviations = Deviations(trailing, **source.deviations) if lenient else Deviations()
    return Parsed(
        name,
        version,
        data,
        values,
        root,
        end,
        error,
        tuple(source.flaws),
        deviations if any(deviations) else None,
        package,
    )


def decoded_end(root: Node) -> int:
    """Find the end of the decoded part of an incomplete tree."""
    return max((leaf.end for leaf in root.leaves()), default=root.offset)


def decode(
    name: str,
    version: int,
    data: bytes,
    *,
    lenient: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> dict[str, Any]:
    """Decode a message body to dicts, attribute -> value; raises what `kafkawire.decode` raises."""
    parsed = parse(name, version, data, lenient=lenient, limits=limits)
    if parsed.error is not None:
        raise parsed.error
    assert parsed.values is not None
    return parsed.values


def encode(
    name: str, version: int, value: Any, *, lenient: bool = False, package: str = OURS
) -> bytes:
    """Encode a message from an instance of its class, or from the result of `decode`.

    Raises EncodeError with the path of the first field in wire order that cannot be written.
    """
    construct = construct_of(name, version, package)
    module = None if isinstance(value, dict) else type(value).__module__
    sink = Sink([name], lenient=lenient, module=module)
    construct.piece.build_stream(value, sink)
    deviations = getattr(value, "deviations", None)
    return sink.getvalue() + (deviations.trailing if lenient and deviations is not None else b"")


def values_of(value: Any) -> Any:
    """Convert instances of generated classes to the form of `decode`, to compare them."""
    names = getattr(value, "__match_args__", None)
    if names is not None:
        return {name: values_of(getattr(value, name)) for name in names}
    if isinstance(value, list):
        return [values_of(item) for item in value]
    return value
