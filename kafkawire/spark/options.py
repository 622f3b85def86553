"""Options of the reader.

Option names are those of the documentation, in any case; invalid values and unknown names are
rejected before any work is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NoReturn

from ..capture.filters import parse as parse_filter
from ..capture.packets.kinds import TUNNELS, tunnel
from ..capture.tables import TABLES
from ..capture.tcp.connection import endpoint
from ..capture.tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from ..capture.tls.keylog import KeyLogError, key_log_content, parse_key_log
from ..errors import FilterError
from ..messages.api_key import ApiKey
from ..whole_numbers import whole_number
from .errors import BadOption, InvalidFilter, UnknownOption

SPLIT_BYTES: Final = 32 << 20
CHUNK_BYTES: Final = 4 << 20

HIGHEST_API_KEY: Final = 0x7FFF
LAST_SECOND: Final = 0x7FFF_FFFF_FFFF_FFFF // 1_000_000_000
"""Since 1970, of a timestamp in nanoseconds."""
API_NAMES: Final = {int(key): key.name.replace("_", "").lower() for key in ApiKey}
"""API key -> its name in the form in which names are compared."""


class Sets(StrEnum):
    """Which files form one capture, so that connections can span them."""

    ALL = "all"
    DIRECTORY = "directory"
    FILE = "file"

    def of(self, name: str) -> str:
        """Return the set of a file."""
        if self is Sets.ALL:
            return ""
        return name if self is Sets.FILE else name.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Options:
    """See docs/spark.md; times in nanoseconds since the epoch. others: options of the store.

    keylog: the content of a TLS key log.
    """

    table: str = "exchanges"
    ports: tuple[int, ...] = ()
    brokers: tuple[str, ...] = ()
    apis: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    where: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    split_bytes: int | None = None
    chunk_bytes: int = CHUNK_BYTES
    include_bodies: bool = True
    include_records: bool = True
    redact: bool = False
    max_flow_bytes: int = DEFAULT_REASSEMBLY.max_held_bytes
    idle_ns: int = DEFAULT_REASSEMBLY.silence_ns
    fail_on_error: bool = False
    partitions: int | None = None
    sets: Sets = Sets.ALL
    scratch: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    keylog: bytes = field(default=b"", repr=False)
    tunnels: tuple[str, ...] = ()

    @property
    def reassembly(self) -> ReassemblyLimits:
        """The limits of reassembly."""
        return replace(
            DEFAULT_REASSEMBLY, max_held_bytes=self.max_flow_bytes, silence_ns=self.idle_ns
        )


def parse(values: Mapping[str, Any]) -> Options:
    """Parse options. Raises BadOption."""
    options = Options()
    others: dict[str, str] = {}
    for name, value in values.items():
        setter = _BY_NAME.get(name.lower())
        if setter is None:
            if _similar_option(name):
                unknown(name)
            others[name] = str(value)
        elif value is not None:
            options = setter(options, name, value)
    return replace(options, others=others)


def unknown(name: str) -> NoReturn:
    """Reject an unknown option. Raises BadOption."""
    meant = _similar_option(name)
    raise UnknownOption("name", name, meant or f"one of {', '.join(SETTERS)}")


def _similar_option(name: str) -> str | None:
    """Return the option with a similar name, if any."""
    matches = get_close_matches(name.lower(), _BY_NAME, n=1, cutoff=0.9)
    return next((option for option in SETTERS if option.lower() in matches), None)


_Setter = Callable[[Options, str, Any], Options]


def listed(value: Any) -> list[str]:
    """Split a list with commas, or take a list."""
    entries = value.split(",") if isinstance(value, str) else value
    return [text for one in entries if (text := str(one).strip())]


def _number(name: str, value: Any, least: int = 1) -> int:
    try:
        number = int(str(value).replace("_", ""))
    except ValueError:
        number = least - 1
    if number < least:
        raise BadOption(name, str(value), f"an integer of at least {least}")
    return number


def _size(name: str, value: Any) -> int:
    text = str(value).strip().lower().removesuffix("b")
    shift = {"k": 10, "m": 20, "g": 30}.get(text[-1:], 0)
    return _number(name, text[:-1] if shift else text) << shift


def _truth(name: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise BadOption(name, str(value), "true or false")
    return text == "true"


def _time(name: str, value: Any) -> int:
    """Parse a time: ISO 8601 (default UTC), or seconds since the epoch."""
    text = str(value).strip()
    seconds = whole_number(text, LAST_SECOND)
    if seconds is not None:
        return seconds * 1_000_000_000
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise BadOption(name, text, "a time such as 2026-11-21T17:00:00Z") from None
    since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - datetime.fromtimestamp(0, UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000


def _table(options: Options, name: str, value: Any) -> Options:
    if value not in TABLES:
        raise BadOption(name, str(value), f"a table: {', '.join(TABLES)}")
    return replace(options, table=value)


def _sets(options: Options, name: str, value: Any) -> Options:
    if value not in list(Sets):
        raise BadOption(name, str(value), f"one of {', '.join(Sets)}")
    return replace(options, sets=Sets(value))


def _ports(options: Options, name: str, value: Any) -> Options:
    ports = tuple(_number(name, one) for one in listed(value))
    if too_high := [one for one in ports if one >= 1 << 16]:
        raise BadOption(name, str(too_high[0]), "a port below 65536")
    return replace(options, ports=ports)


def _apis(options: Options, name: str, value: Any) -> Options:
    """Parse API names as in rows, in any case, or keys; unknown keys are kept."""
    apis = set()
    for one in listed(value):
        plain = one.lower().replace("_", "").removesuffix("request")
        key = whole_number(plain, HIGHEST_API_KEY)
        api = plain if key is None else API_NAMES.get(key)
        if api not in (None, *API_NAMES.values()):
            meant = get_close_matches(plain, API_NAMES.values(), n=1)
            raise BadOption(name, one, ", such as ".join(["an API name or key", *meant]))
        apis.add(api or plain)
    return replace(options, apis=frozenset(apis))


def _brokers(options: Options, name: str, value: Any) -> Options:
    endpoints = listed(value)
    for one in endpoints:
        try:
            endpoint(one)
        except ValueError:
            raise BadOption(name, one, "host:port") from None
    return replace(options, brokers=tuple(endpoints))


def _tunnels(options: Options, name: str, value: Any) -> Options:
    tunnels = listed(value)
    for one in tunnels:
        try:
            tunnel(one)
        except ValueError:
            raise BadOption(name, one, f"TUNNEL:PORT, with {', '.join(TUNNELS)}") from None
    return replace(options, tunnels=tuple(tunnels))


def _where(options: Options, name: str, value: Any) -> Options:
    """Parse a filter; the rows of all tasks have no common first packet for relative times."""
    text = str(value)
    try:
        condition = parse_filter(text)
    except FilterError as error:
        raise InvalidFilter(name, text, str(error)) from None
    if condition.is_relative:
        raise InvalidFilter(name, text, "times must not be relative to the first packet")
    return replace(options, where=text)


def _keylog(options: Options, name: str, value: Any) -> Options:
    """Read a key log: the tasks get its content."""
    path = Path(str(value))
    try:
        data = key_log_content(path)
        parse_key_log(data, str(path))
    except KeyLogError as error:
        raise BadOption(name, str(path), f"a TLS key log: {error.reason}") from None
    except OSError as error:
        expected = f"the path of a readable file: {error.strerror or error}"
        raise BadOption(name, str(path), expected) from None
    return replace(options, keylog=data)


def _max_flow(options: Options, name: str, value: Any) -> Options:
    return replace(options, max_flow_bytes=_size(name, value))


def _idle(options: Options, name: str, value: Any) -> Options:
    seconds = _number(name, str(value).lower().removesuffix("s"))
    return replace(options, idle_ns=seconds * 1_000_000_000)


SETTERS: Final[dict[str, _Setter]] = {
    "table": _table,
    "ports": _ports,
    "brokers": _brokers,
    "keylog": _keylog,
    "tunnels": _tunnels,
    "apis": _apis,
    "topics": lambda o, _, value: replace(o, topics=frozenset(listed(value))),
    "where": _where,
    "startTs": lambda o, name, value: replace(o, start_ns=_time(name, value)),
    "endTs": lambda o, name, value: replace(o, end_ns=_time(name, value)),
    "splitBytes": lambda o, name, value: replace(o, split_bytes=_size(name, value)),
    "chunkBytes": lambda o, name, value: replace(o, chunk_bytes=_size(name, value)),
    "includeBodies": lambda o, name, value: replace(o, include_bodies=_truth(name, value)),
    "includeRecords": lambda o, name, value: replace(o, include_records=_truth(name, value)),
    "redact": lambda o, name, value: replace(o, redact=_truth(name, value)),
    "maxFlowBytes": _max_flow,
    "idleTimeout": _idle,
    "failOnError": lambda o, name, value: replace(o, fail_on_error=_truth(name, value)),
    "sets": _sets,
    "scratch": lambda o, _, value: replace(o, scratch=str(value)),
    "partitions": lambda o, name, value: replace(o, partitions=_number(name, value)),
}
"""Option -> its parser."""

_BY_NAME: Final = {name.lower(): setter for name, setter in SETTERS.items()}
