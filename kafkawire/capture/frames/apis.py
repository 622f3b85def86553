"""The APIs of a package: what decoding needs to know of each for every frame.

What is known of an API comes from the package's index, and is cached; a class is imported when
its first body is decoded. A connection has one package, and its requests say which.

    Package --apis_of--> Apis --api(key)--> Api { request, response: Side }
"""

from __future__ import annotations

import re
from typing import Any, Final, final

from mypy_extensions import i64, mypyc_attr

from ...messages.api_key import ApiKey
from ...primitives import MessageIndex, MessageInfo
from ...protocol.packages import KAFKA, Package, package_named

NEVER: Final = 1 << 15
"""A version that no message has."""

NO_KEY: Final = 1 << 16
"""An API key that no request has."""

PREFIX: Final = 12
"""Bytes of the size, API key, version and correlation id, which every request begins with."""

CLIENT_ID: Final = 14
"""Bytes of a request up to the length of its client id, in Kafka's header versions from 1 on."""

_KAFKA_AHEAD: Final = re.compile(
    rb"(?=(?!\x00\x00\x00[\x00-\x07])[\x00-\x06].{3}\x00[\x00-\x7f]\x00[\x00-\x3f][\x00-\x7f].{3}(?:\xff\xff|[\x00-\x7f].))",
    re.DOTALL,
)
"""A size from 8 to 112 MiB, a key and a version below 128 and 64, a correlation id that is not
negative, a client id length.
"""

_SIZE_AHEAD: Final = rb"(?!\x00\x00\x00[\x00-\x07])[\x00-\x06].{3}"
_ID_AHEAD: Final = rb"[\x00-\x7f].{3}"


@final
class Side:
    """The requests or the responses of an API: their versions and their class."""

    def __init__(self, info: MessageInfo, index: MessageIndex) -> None:
        self.info: MessageInfo = info
        self.first: int = info.first
        self.last: int = info.last
        self._index: MessageIndex = index
        self._class: Any = None

    def load(self) -> Any:
        """Return the message class."""
        if self._class is None:
            self._class = self._index.load(self.info.name)
        return self._class


@final
class Api:
    """An API by its key; name and sides are None for an unknown key.

    ordinary: the first version whose requests have Kafka's header versions 1 or 2; tagged: the
    first with 2, which ends in tagged fields. ordinary_response: whether its responses have Kafka's
    header versions 0 or 1; tagged_response: the first version with 1.
    """

    def __init__(self, key: int, package: Package) -> None:
        self.name: str | None = None
        self.ordinary: i64 = NEVER
        self.tagged: i64 = NEVER
        self.ordinary_response: bool = False
        self.tagged_response: i64 = NEVER
        self.request: Side | None = None
        self.response: Side | None = None
        index = package.index
        request, response = index.request(key), index.response(key)
        if request is not None:
            self.name = request.name.removesuffix("Request")
            self.request = Side(request, index)
            if not package.own_request_header:
                self.ordinary, self.tagged = _ordered(request, 1)
        if response is not None:
            self.response = Side(response, index)
            if not package.own_response_header:
                ordinary, self.tagged_response = _ordered(response, 0)
                self.ordinary_response = ordinary <= response.first


def _ordered(info: MessageInfo, plain: int) -> tuple[int, int]:
    """Return from where on a message has header version `plain`, then the next one, and no other.

    The second is where the next one begins.
    """
    ordinary = tagged = NEVER
    for first, header in reversed(info.headers):
        if header == plain + 1 and ordinary == tagged:
            ordinary = tagged = first
        elif header == plain:
            ordinary = first
        else:
            break
    return ordinary, tagged


@final
@mypyc_attr(acyclic=True)
class Apis:
    """The APIs of a package.

    head_bytes: of a request, enough for a first check. sasl_handshake, api_versions: the keys of
    Kafka's APIs to which exceptions apply; those of other packages are none. ahead: where requests
    may begin.
    """

    def __init__(self, package: Package) -> None:
        self.package: Package = package
        self.is_kafka: bool = package.is_kafka
        self.sasl_handshake: int = int(ApiKey.SASL_HANDSHAKE) if package.is_kafka else NO_KEY
        self.api_versions: int = int(ApiKey.API_VERSIONS) if package.is_kafka else NO_KEY
        self.head_bytes: int = CLIENT_ID if _all_have_client_ids(package) else PREFIX
        self._apis: dict[int, Api] = {}
        self._ahead: re.Pattern[bytes] | None = _KAFKA_AHEAD if package.is_kafka else None

    def api(self, key: int) -> Api:
        """Look up an API key; unknown keys are not cached."""
        api = self._apis.get(key)
        if api is None:
            api = Api(key, self.package)
            if api.request is not None or api.response is not None:
                self._apis[key] = api
        return api

    @property
    def ahead(self) -> re.Pattern[bytes]:
        """Where requests may begin, judged by their first bytes."""
        ahead = self._ahead
        if ahead is None:
            ahead = self._ahead = _ahead(self.package)
        return ahead

    def __reduce__(self) -> tuple[Any, ...]:
        return apis_of, (self.package.name,)


def _all_have_client_ids(package: Package) -> bool:
    """Whether the first check of every request may look at a client id."""
    if package.is_kafka:
        return True
    requests = [info for info in package.index if info.type == "request"]
    headers = (header for info in requests for _, header in info.headers)
    return not package.own_request_header and all(headers)


def _ahead(package: Package) -> re.Pattern[bytes]:
    """Make the pattern of a size, the API key of a request, a version, and a correlation id.

    Keys with the same first byte are one set, so that a search does not depend on their number.
    """
    keys: dict[int, list[int]] = {}
    newest = 0
    for info in package.index:
        if info.type == "request" and info.api_key is not None:
            keys.setdefault(info.api_key >> 8, []).append(info.api_key & 0xFF)
            newest = max(newest, info.last)
    choices = [
        b"\\x%02x[%s]" % (high, b"".join([b"\\x%02x" % low for low in sorted(lows)]))
        for high, lows in sorted(keys.items())
    ]
    apis = b"(?:" + b"|".join(choices) + b")" if choices else b"(?!)"
    versions = b"[\\x00-\\x%02x]." % (newest >> 8)
    return re.compile(b"(?=" + _SIZE_AHEAD + apis + versions + _ID_AHEAD + b")", re.DOTALL)


KAFKA_APIS: Final = Apis(KAFKA)
"""The APIs of Kafka."""

_known: Final[dict[str, Apis]] = {KAFKA.name: KAFKA_APIS}


def apis_of(name: str) -> Apis:
    """Return the APIs of a package by its import name; raises as `package_named` does."""
    package = package_named(name)
    apis = _known.get(name)
    if apis is None or apis.package is not package:
        apis = _known[name] = Apis(package)
    return apis
