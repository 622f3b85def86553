"""The cases of a run: case `number` of a seed is always the same request with the same fault.

Plan (seed, APIs, versions, names) ─number─▶ Case ─▶ bytes on the wire, what may follow
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from ..errors import EncodeError
from ..messages.api_key import ApiKey
from ..messages.produce_request import ProduceRequest
from ..primitives import Message
from ..protocol.frame import encode_frame
from .bodies import Maker
from .draws import drawn
from .faults import Fault, Kind, Layout, applied
from .names import Names
from .scopes import Scope, scope_of

CLIENT_IDS: Final = ("kafkawire-fuzz", "", None)
CORRELATION_IDS: Final = (1, 0, -1, (1 << 31) - 1, -(1 << 31))
FOLLOW_UP: Final = 0x46555A5A
"""The correlation id of the request that follows on the same connection."""


class Form(Enum):
    """How usual a request is."""

    VALID = "valid"
    BOUNDARY = "boundary"
    BROKEN = "broken"


UNUSUAL: Final[Mapping[Form, Sequence[float]]] = {
    Form.VALID: (0.0,),
    Form.BOUNDARY: (0.1, 0.3, 0.7),
    Form.BROKEN: (0.0, 0.1),
}
"""Form -> the chance of each field to be at a boundary."""


class Expected(Enum):
    """What a broker may do with a request."""

    RESPONSE = "a response"
    NO_RESPONSE = "no response"
    RESPONSE_OR_CLOSE = "a response, or the end of the connection"
    ANYTHING = "anything"


class Case(NamedTuple):
    """A request as it is sent.

    fault: what is wrong with its bytes; None for a request that can be decoded.
    """

    number: int
    form: Form
    api: ApiKey
    version: int
    message: Message
    fault: Fault | None = None
    correlation_id: int = 1
    client_id: str | None = None

    def data(self) -> bytes:
        """Return the bytes on the wire. Raises EncodeError, NotApplicable."""
        frame = encode_frame(
            self.message, self.version, self.correlation_id, client_id=self.client_id
        )
        if self.fault is None:
            return frame
        return applied(Layout(frame, self.api, self.version), self.fault)

    @property
    def expected(self) -> Expected:
        """What may follow."""
        unacknowledged = isinstance(self.message, ProduceRequest) and not self.message.acks
        if self.fault is None:
            if self.version in REFUSED.get(self.api, ()):
                return Expected.RESPONSE_OR_CLOSE
            return Expected.NO_RESPONSE if unacknowledged else Expected.RESPONSE
        if self.fault.kind in UNFINISHED or unacknowledged:
            return Expected.ANYTHING
        if self.fault.kind in SHIFTS and self.api in WAIT:
            return Expected.ANYTHING
        return Expected.RESPONSE_OR_CLOSE


UNFINISHED: Final = frozenset({Kind.INCOMPLETE, Kind.SIZE})
"""After these the broker waits for bytes that do not come."""
SHIFTS: Final = frozenset({Kind.LENGTH, Kind.BYTES})
"""These may give any field any value, and the request may still be decoded."""
WAIT: Final = frozenset(
    {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.SHARE_FETCH}
)
"""A field of their requests says how long the broker may wait, or that it does not respond."""


ALL: Final = range(1 << 15)
REFUSED: Final[Mapping[ApiKey, range]] = {
    ApiKey.PRODUCE: range(3),
    ApiKey.DESCRIBE_ACLS: ALL,
    ApiKey.CREATE_ACLS: ALL,
    ApiKey.DELETE_ACLS: ALL,
}
"""API -> versions in which Kafka closes the connection after requests that can be decoded: Produce
up to 2 is listed for clients that expect it, and not served; ACLs of unknown types are refused
where the request is read."""


@dataclass(frozen=True)
class Plan:
    """What a run sends.

    versions: API -> the versions that the broker offers, of those to be sent. scrambles: whether
    any byte of a request that changes something may be another.
    """

    seed: int
    versions: Mapping[ApiKey, range]
    names: Names
    scrambles: bool = False

    def case(self, number: int) -> Case:
        """Return a case; it depends on the plan and its number alone."""
        rng = random.Random(f"{self.seed}:{number}")
        form = rng.choice(tuple(Form))
        api = rng.choice(sorted(self.versions))
        version = rng.choice(self.versions[api])
        maker = Maker(api, version, self.names, rng, number, rng.choice(UNUSUAL[form]))
        case = Case(number, form, api, version, maker.request())
        if form is Form.VALID:
            return case._replace(client_id=CLIENT_IDS[0])
        case = case._replace(
            correlation_id=rng.choice(CORRELATION_IDS), client_id=rng.choice(CLIENT_IDS)
        )
        if form is Form.BOUNDARY:
            return case
        frame = encode_frame(case.message, version, case.correlation_id, client_id=case.client_id)
        scrambles = self.scrambles or scope_of(api) is Scope.NOTHING
        fault = drawn(Layout(frame, api, version), self.versions[api], scrambles, rng)
        return case._replace(fault=fault)


def can_be_sent(case: Case) -> bool:
    """Whether a case, changed from another, has bytes."""
    try:
        case.data()
    except (EncodeError, ValueError):
        return False
    return True
