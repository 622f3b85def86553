"""Options of a watch.

Names are those of docs/spark.md, in any case; other options are left to the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ..errors import BadOption
from .arrivals import Finished

IDLE_NS: Final = 900_000_000_000
"""Longer than brokers and clients leave a connection idle (connections.max.idle.ms: 10 and 9
minutes).
"""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of a watch.

    finished, still_seconds: see `arrivals`. poll_seconds: between two polls. batch_bytes: of files
    in a batch. state_bytes: limit of the state of a pair of endpoints, 8 MB for each direction.
    idle_ns: silence after which a connection is closed, by the time of the packets.
    """

    finished: Finished = Finished.NEXT
    still_seconds: float = 60
    poll_seconds: float = 10
    batch_bytes: int = 1 << 30
    state_bytes: int = 16 << 20
    idle_ns: int = IDLE_NS


def parse_watch_options(options: Mapping[str, Any]) -> tuple[WatchOptions, dict[str, Any]]:
    """Take the options of a watch out of all options; also returns the rest. Raises BadOption.

    `idleTimeout` is an option of the watch and of the reader.
    """
    watch_options, rest = WatchOptions(), {}
    for name, value in options.items():
        setter = SETTERS.get(name.lower())
        if setter is not None:
            watch_options = setter(watch_options, name, str(value))
        if setter is None or name.lower() == "idletimeout":
            rest[name] = value
    return watch_options, rest


def _number(name: str, value: str, unit: str) -> float:
    try:
        number = float(value.removesuffix("s"))
    except ValueError:
        number = -1
    if not 0 < number < 1 << 40:
        raise BadOption(name, value, f"a number of {unit}")
    return number


def _size(name: str, value: str) -> int:
    text = value.lower().removesuffix("b")
    shift = {"k": 10, "m": 20, "g": 30}.get(text[-1:], 0)
    return int(_number(name, text[:-1] if shift else text, "bytes") * (1 << shift))


def _finished(watch_options: WatchOptions, name: str, value: str) -> WatchOptions:
    if value not in list(Finished):
        raise BadOption(name, value, f"one of {', '.join(Finished)}")
    return replace(watch_options, finished=Finished(value))


_Setter = Callable[[WatchOptions, str, str], WatchOptions]

SETTERS: Final[dict[str, _Setter]] = {
    "finished": _finished,
    "stillseconds": lambda r, n, v: replace(r, still_seconds=_number(n, v, "seconds")),
    "pollseconds": lambda r, n, v: replace(r, poll_seconds=_number(n, v, "seconds")),
    "batchbytes": lambda r, n, v: replace(r, batch_bytes=_size(n, v)),
    "statebytes": lambda r, n, v: replace(r, state_bytes=_size(n, v)),
    "idletimeout": lambda r, n, v: replace(r, idle_ns=int(_number(n, v, "seconds") * 1e9)),
}
"""Option in lower case -> its parser."""
