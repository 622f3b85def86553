"""Checks whether bytes are canonical: those that an encoder writes for the same values.

Canonical is `encode(decode(b)) == b` by the fast codec, and nothing else; the reference codec
only finds the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import DecodeError, EncodeError
from ..protocol.packages import KAFKA, Package
from .codec import Parsed, encode, parse
from .tree import Flaw


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether bytes are canonical (then it is true); if not, every reason found, by offset."""

    name: str
    version: int
    reasons: tuple[Flaw, ...]

    @property
    def canonical(self) -> bool:
        return not self.reasons

    def __bool__(self) -> bool:
        return self.canonical

    def __str__(self) -> str:
        title = f"{self.name} version {self.version}"
        if self.canonical:
            return f"{title}: canonical"
        return "\n  ".join([f"{title}: not canonical", *map(str, self.reasons)])


def verify(name: str, version: int, data: bytes, *, package: Package = KAFKA) -> Verdict:
    """Return whether a message body is canonical, and if not, why.

    Bytes that cannot be decoded are not canonical either. Raises UnknownApiKey, UnsupportedVersion.
    """
    cls = package.index.load(name)
    try:
        same = cls.decode(data, version).encode(version) == data
    except (DecodeError, EncodeError):
        same = False
    if same:
        return Verdict(name, version, ())
    parsed = parse(name, version, data, lenient=True, package=package.name)
    return Verdict(name, version, reasons(parsed))


def reasons(parsed: Parsed) -> tuple[Flaw, ...]:
    """List how the bytes differ from their encoding; at least one reason, by offset."""
    flaws = list(parsed.flaws)
    error = parsed.error
    if error is not None:
        flaws.append(Flaw(error.reason, error.path, error.offset or 0))
    elif not flaws:
        flaws.append(difference(parsed))
    return tuple(sorted(flaws, key=lambda flaw: flaw.offset))


def difference(parsed: Parsed) -> Flaw:
    """Find the first byte that an encoder would write differently."""
    try:
        written = encode(parsed.name, parsed.version, parsed.values, package=parsed.package)
    except EncodeError as error:
        return Flaw(f"cannot be written: {error.reason}", error.path, parsed.tree.offset)
    pairs = zip(parsed.data, written, strict=False)
    at = next((i for i, (was, is_) in enumerate(pairs) if was != is_), len(written))
    path = next((leaf.path for leaf in parsed.tree.leaves() if leaf.end > at), parsed.name)
    return Flaw("an encoder writes this otherwise", path, at)
