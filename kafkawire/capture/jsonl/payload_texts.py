"""Writes payloads in bytes fields as JSON text, for decoded messages and for `writer`.

The text is that of `Payload.to_json_text`; a payload of the same kind, protocol and bytes is
written once, since members of a group send the same, and get in responses what was in requests.

    bytes --program--> text, if they fit their own version exactly      others --Payload--> text
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Final, final

from ...messages import REGISTRY
from ...primitives.limits import DEFAULT_LIMITS, elements_within
from ...protocol.embedded import MAX_CACHED, DecodedPayloadTexts, payload_of_kinds
from ...protocol.kinds import KINDS
from ...protocol.payload_fields import ASSIGNMENT, METADATA, USER_DATA, kinds_of
from ...protocol.versioned import PREFIX
from .wire_layouts import field_of, program_of
from .writer import Text

CONSUMER: Final = (METADATA["consumer"], ASSIGNMENT["consumer"])
GUESSED: Final = (ASSIGNMENT["consumer"],)
"""Kinds of the consumer protocol; of them, those whose text shows whether a guess is plausible."""

PLAUSIBLE_ASSIGNMENT: Final = re.compile(
    r'\{"assignedPartitions":\['
    r'(?:\{"topic":"[a-zA-Z0-9._-]{1,249}","partitions":\[[0-9,]*\]\},?)*'
    r'\],"userData":[^{}]*\}'
)
"""The text of an assignment that `kinds.recognise` takes for one."""


def _no_records(*_: object) -> Any:
    raise AssertionError("payloads have no records")


@final
class PayloadTexts(DecodedPayloadTexts):
    """Writes payloads, also those of messages that are not decoded; cached."""

    def text(
        self, number: int, protocol_type: str | None, name: str | None, data: bytes
    ) -> str | None:
        """Write the payload of a field that `wire_layouts` numbered; None if it has none."""
        field = field_of(number)
        kinds = self.kinds.get((number, protocol_type, name))
        if kinds is None:
            if len(self.kinds) == MAX_CACHED:
                self.kinds.clear()
            kinds = kinds_of(field, protocol_type, name)
            self.kinds[number, protocol_type, name] = kinds
        key = kinds, name, data
        cached = self.texts.get(key, "")
        if cached != "":
            return cached
        quick = _quick_kind(kinds, name, data)
        text = None if quick is None else self._quick_text(quick, len(kinds) > 1, data)
        if text is None:
            payload = payload_of_kinds(kinds, field, name, "", data)
            if payload is not None:
                text = payload.to_json_text(secrets=self.secrets)
        return self.keep(key, data, text)

    @cached_property
    def _out(self) -> Text:
        return Text(_no_records, _no_records, _no_records, False)

    def _quick_text(self, kind: str, is_guess: bool, data: bytes) -> str | None:
        """Write a payload by its program; None if it has to be decoded."""
        version = int.from_bytes(data[:PREFIX], "big", signed=True)
        program = program_of(REGISTRY.load(kind), version, False, self.secrets)
        out = self._out
        out.truncate(0)
        elements = elements_within(DEFAULT_LIMITS, len(data) - PREFIX)
        assert program is not None  # the consumer protocol has neither secrets nor tags
        if not out.body(data, PREFIX, program, elements):
            return None
        text = bytes(out.view()).decode("ascii")
        if is_guess and PLAUSIBLE_ASSIGNMENT.fullmatch(text) is None:
            return None
        return f'{{"kind":"{kind}","version":{version},"value":{text}}}'


def _quick_kind(kinds: tuple[str, ...], name: str | None, data: bytes) -> str | None:
    """Return the kind of a payload of the consumer protocol with nothing inside.

    None for others, and for those whose version is unknown.
    """
    kind = kinds[0] if kinds else ""
    if len(kinds) > 1 and (kind not in GUESSED or KINDS[kinds[1]].marker in data):
        return None
    if kind not in CONSUMER or (kind == METADATA["consumer"] and name in USER_DATA):
        return None
    info = REGISTRY.get(kind)
    version = int.from_bytes(data[:PREFIX], "big", signed=True)
    return kind if len(data) >= PREFIX and info.first <= version <= info.last else None
