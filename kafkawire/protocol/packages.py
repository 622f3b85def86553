"""A generated package, as decoders see it: its messages, its header classes, its header versions.

What reads or writes messages of any package takes the package as a value, and `KAFKA` is ours.
A package has headers of its own if it has messages named RequestHeader and ResponseHeader;
otherwise it has Kafka's. Whatever only Kafka does is done only where `is_kafka`.

    import name --package_named--> Package { index, request_header, response_header }

Both sides of every header version begin alike, so that any frame can be taken for what it is:

    RequestHeader   int16 request_api_key, int16 request_api_version, int32 correlation_id, ...
    ResponseHeader  int32 correlation_id, ...
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from ..errors import UnknownApiKey
from ..messages import REGISTRY
from ..messages.request_header import RequestHeader
from ..messages.response_header import ResponseHeader
from ..primitives import DEFAULT_LIMITS, Limits, Message, MessageIndex, Structure
from .fields import all_fields, fields_at

OURS: Final = "kafkawire.messages"
"""The import name of kafkawire's own messages."""

PREFIXES: Final = {
    "RequestHeader": (
        ("request_api_key", "int16"),
        ("request_api_version", "int16"),
        ("correlation_id", "int32"),
    ),
    "ResponseHeader": (("correlation_id", "int32"),),
}
"""The fields that every version of a header begins with."""

MAX_CACHED: Final = 1 << 16
"""Header versions that are cached: versions are as peers write them."""


class Package:
    """A generated package.

    index: its messages. request_header, response_header: the classes of its headers.
    is_kafka: whether it is kafkawire's own, to which Kafka's exceptions apply.
    usual_header_version: that of a request with an unknown key.
    own_request_header, own_response_header: whether it has other fields than Kafka's.
    """

    def __init__(self, index: MessageIndex) -> None:
        self.name: str = index.package
        self.index: MessageIndex = index
        self.is_kafka: bool = index.package == OURS
        self.request_header: Any = _header(index, RequestHeader)
        self.response_header: Any = _header(index, ResponseHeader)
        self.own_request_header: bool = not _is_alike(index, RequestHeader)
        self.own_response_header: bool = not _is_alike(index, ResponseHeader)
        self.usual_header_version: int = 1
        if self.own_request_header:
            info = index.get("RequestHeader")
            self.usual_header_version = min(max(info.first, 1), info.last)
        self.request_versions: dict[tuple[int, int], int] = {}
        self.response_versions: dict[tuple[int, int], int] = {}
        self._check_versions()

    def header_package(self, name: str) -> str:
        """Return the import name of the package of a header: its own, or Kafka's."""
        return self.name if _has_header(self.index, name) else OURS

    def find_header_version(self, type: str, api_key: int, api_version: int) -> int:
        """Find the header version of a request or response, and cache it.

        The caches are `request_versions` and `response_versions`, by API key and version.
        UnknownApiKey for an unknown key.
        """
        info = self.index.find(type, api_key)
        if info is None:
            raise UnknownApiKey(f"unknown API key {api_key}")
        header_version = info.header_version(api_version)
        cache = self.request_versions if type == "request" else self.response_versions
        if len(cache) >= MAX_CACHED:
            cache.clear()
        cache[api_key, api_version] = header_version
        return header_version

    def _check_versions(self) -> None:
        """Check that each header version that a message names exists. Raises ValueError."""
        if self.is_kafka:
            return
        names = {"request": "RequestHeader", "response": "ResponseHeader"}
        ranges = {
            type: (info.first, info.last)
            for type, name in names.items()
            for info in [(self.index if _has_header(self.index, name) else REGISTRY).get(name)]
        }
        for info in self.index:
            first, last = ranges.get(info.type, (0, -1))
            for _, header in info.headers:
                if not first <= header <= last:
                    reason = f"{info.name} has header version {header}"
                    raise ValueError(
                        f"{self.name}: {reason}, and {names[info.type]} versions {first}-{last}"
                    )

    def __repr__(self) -> str:
        return f"Package({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return package_named, (self.name,)


def _header(index: MessageIndex, kafkas: Any) -> Any:
    """Return the class of a header: the package's own, else Kafka's. Raises ValueError."""
    name: str = kafkas.__name__
    if index is REGISTRY or not _has_header(index, name):
        return kafkas
    cls, info, prefix = index.load(name), index.get(name), PREFIXES[name]
    for version in range(info.first, info.last + 1):
        fields = [field for field in fields_at(cls, version) if not field.is_tagged_at(version)]
        begins = tuple((f.attribute, f.element) for f in fields[: len(prefix)] if not f.is_array)
        if begins != prefix:
            expected = ", ".join(f"{type} {attribute}" for attribute, type in prefix)
            raise ValueError(
                f"{index.package}: version {version} of {name} does not begin with {expected}"
            )
    return cls


def _has_header(index: MessageIndex, name: str) -> bool:
    return name in index and index.get(name).type == "header"


def _is_alike(index: MessageIndex, kafkas: Any) -> bool:
    """Whether the header of a package has the fields of Kafka's in every version."""
    name: str = kafkas.__name__
    if index is REGISTRY or not _has_header(index, name):
        return True
    ours, own = REGISTRY.get(name), index.get(name)
    if (ours.first, ours.last, ours.flexible) != (own.first, own.last, own.flexible):
        return False
    return all_fields(index.load(name)) == all_fields(kafkas)


KAFKA: Final = Package(REGISTRY)
"""kafkawire's own messages."""

_packages: Final[dict[str, Package]] = {OURS: KAFKA}


def package_named(name: str) -> Package:
    """Import a generated package.

    Raises ModuleNotFoundError, and ValueError for a package that was not generated, or by a
    version of kafkawire too old, or whose headers cannot be used.
    """
    index = getattr(import_module(name), "REGISTRY", None)
    package = _packages.get(name)
    if package is None or package.index is not index:  # a package may be reloaded
        if not isinstance(index, MessageIndex) or index.package != name:
            raise ValueError(f"{name} is not a package that kafkawire codegen generates")
        package = _packages[name] = Package(index)
    return package


def package_with(module: str) -> Package | None:
    """Find the generated package that a module is in; None for any other module."""
    name = module.rpartition(".")[0]
    try:
        return package_named(name) if name else None
    except (ImportError, ValueError):
        return None


def package_of(cls: type[Structure]) -> Package | None:
    """Find the package of a generated class; None for any other class."""
    owner: Any = cls
    return package_with(owner.__module__)


def decode(
    name: str,
    version: int,
    data: bytes,
    *,
    lenient: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    package: Package = KAFKA,
) -> Message:
    """Decode a message body: `decode("FetchRequest", 12, body)`.

    lenient: accept traffic as it is: bytes after the last field, text that is not UTF-8 (kept by
    surrogateescape), known tags at versions without them. The message's `deviations` lists the
    deviations, and `encode(version, lenient=True)` writes them again.

    Raises DecodeError (with field path and byte offset), UnknownApiKey, UnsupportedVersion.
    """
    cls = package.index.load(name)
    message: Message = cls.decode(data, version, lenient=lenient, limits=limits)
    return message
