"""The kinds of embedded payloads: how to decode each, and when a guess is plausible.

Content never raises. Malformed bytes give a payload with an `error`; a kind is guessed only if
the bytes decode to the last one and are plausible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from ..errors import Truncated, UnsupportedVersion, WireError
from ..messages import REGISTRY
from ..primitives import Limits
from .connect import CONNECTOR_TASK
from .frame import Frame, decode_request_body
from .header import decode_request_header
from .payload import Payload
from .sticky import CooperativeStickyUserData, StickyUserData
from .versioned import Reading, decode_at, exact_fit, newest_fit, read_versioned

REQUEST: Final = "request"
"""The kind of a request inside another: header and body without size."""


class Kind(NamedTuple):
    """One kind of payload.

    read: raises WireError for other bytes. named: the bytes with the version; None if the version
    follows from the length. plausible: whether a decoded value is likely to be of this kind; None
    for a kind that is never guessed. marker: bytes that every plausible payload contains.
    """

    read: Callable[[bytes, Limits], Reading]
    named: slice | None
    plausible: Callable[[Any], bool] | None = None
    marker: bytes = b""


def read_payload(
    path: str,
    kind: str,
    data: bytes,
    limits: Limits,
    kinds: Mapping[str, Kind] | None = None,
) -> Payload:
    """Decode bytes of one of some kinds, Kafka's if not given; a fault is in `error`."""
    payload_kind = (KINDS if kinds is None else kinds)[kind]
    try:
        version, read_as, value = payload_kind.read(data, limits)
    except WireError as error:
        return Payload(path, kind, _named_version(payload_kind.named, data), None, None, str(error))
    read_kind = REQUEST if isinstance(value, Frame) else type(value).__name__
    return Payload(path, read_kind, version, read_as, value)


def recognise(path: str, kinds: Iterable[str], data: bytes, limits: Limits) -> Payload | None:
    """Decode bytes as the one kind that fits them all and is plausible; None if it is not one."""
    fitting = None
    for kind in kinds:
        payload_kind = KINDS[kind]
        if payload_kind.plausible is None or payload_kind.marker not in data:
            continue
        reading = exact_fit(kind, data, limits)
        if reading is None or not payload_kind.plausible(reading.value):
            continue
        if fitting is not None:
            return None
        fitting = reading
    if fitting is None:
        return None
    version, read_as, value = fitting
    return Payload(path, type(value).__name__, version, read_as, value)


def _named_version(named: slice | None, data: bytes) -> int | None:
    if named is None or len(data) < named.stop:
        return None
    return int.from_bytes(data[named], "big", signed=True)


# -- payloads that do not begin with an int16 version


def _read_request(data: bytes, limits: Limits) -> Reading:
    head = decode_request_header(data)
    api_key, version = head.header.request_api_key, head.header.request_api_version
    body = decode_request_body(api_key, version, data, head.end, True, limits)
    frame = Frame(len(data), head.header_version, head.header, api_key, version, version, body)
    return Reading(version, version, frame)


def _read_sticky(data: bytes, limits: Limits) -> Reading:
    newest = StickyUserData.LAST
    reading = newest_fit(
        StickyUserData, data, 0, range(newest, StickyUserData.FIRST - 1, -1), limits
    )
    if reading is not None:
        return reading
    return Reading(newest, newest, decode_at(StickyUserData, data, 0, newest, limits))


def _read_cooperative_sticky(data: bytes, limits: Limits) -> Reading:
    if len(data) != 4:
        return _read_sticky(data, limits)
    return Reading(0, 0, CooperativeStickyUserData.decode(data, 0, limits=limits))


def _read_streams(data: bytes, limits: Limits) -> Reading:
    name = "SubscriptionInfoData"
    if len(data) < 4:
        raise Truncated("the data ends inside the version", name, len(data))
    info = REGISTRY.get(name)
    version = int.from_bytes(data[:4], "big", signed=True)
    if not info.first <= version <= info.last:
        # of a newer one, Streams itself reads only the version (version probing, KIP-268)
        raise UnsupportedVersion(f"{name} has versions {info.first}-{info.last}, not {version}")
    return Reading(version, version, decode_at(REGISTRY.load(name), data, 0, version, limits))


# -- plausibility of a guess

TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")

URL_MARKER: Final = "://"


def _topics_and_partitions(rows: list[Any]) -> bool:
    for row in rows:
        if not TOPIC_NAME.fullmatch(row.topic) or min(row.partitions, default=0) < 0:
            return False
    return True


def _plausible_subscription(value: Any) -> bool:
    return (
        all(TOPIC_NAME.fullmatch(topic) for topic in value.topics)
        and _topics_and_partitions(value.owned_partitions)
        and value.generation_id >= -1
    )


def _plausible_assignment(value: Any) -> bool:
    return _topics_and_partitions(value.assigned_partitions)


def _plausible_worker(value: Any) -> bool:
    return URL_MARKER in value.url and value.config_offset >= -1


def _plausible_connectors(value: Any) -> bool:
    rows = (value.assignment or []) + (value.revoked or [])
    return (
        value.error in (0, 1)
        and URL_MARKER in value.leader_url
        and value.config_offset >= -1
        and all(row.connector and min(row.tasks, default=0) >= CONNECTOR_TASK for row in rows)
    )


def _versioned(name: str, plausible: Callable[[Any], bool] | None = None, marker: str = "") -> Kind:
    return Kind(partial(read_versioned, name), slice(0, 2), plausible, marker.encode())


KINDS: Final[dict[str, Kind]] = {
    "ConsumerProtocolSubscription": _versioned(
        "ConsumerProtocolSubscription", _plausible_subscription
    ),
    "ConsumerProtocolAssignment": _versioned("ConsumerProtocolAssignment", _plausible_assignment),
    "ConnectWorkerMetadata": _versioned("ConnectWorkerMetadata", _plausible_worker, URL_MARKER),
    "ConnectAssignment": _versioned("ConnectAssignment", _plausible_connectors, URL_MARKER),
    "DefaultPrincipalData": _versioned("DefaultPrincipalData"),
    "StickyUserData": Kind(_read_sticky, None),
    "CooperativeStickyUserData": Kind(_read_cooperative_sticky, None),
    "SubscriptionInfoData": Kind(_read_streams, slice(0, 4)),
    REQUEST: Kind(_read_request, slice(2, 4)),
}
