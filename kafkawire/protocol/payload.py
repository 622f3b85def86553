"""An embedded payload: the decoded content of a bytes field.

A payload has either a value and the version it was read as, or an error.
"""

from __future__ import annotations

import json
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

from ..primitives import Message, Structure
from .fields import all_fields
from .frame import Frame
from .json_form import Json, to_json
from .json_text import shown_json, to_json_text


class Payload(NamedTuple):
    """The content of a bytes field.

    path: the field, as `protocols[0].metadata`.
    kind: the name of a message or of one of our own structures (`ConnectAssignment`,
        `StickyUserData`), or `request`.
    version: the version in the payload; None if it is too short to have one.
    read_as: the version whose layout fitted: the newest known one if `version` is newer, an older
    one if a client labelled its payload with a wrong version. None if there is an error.
    value: the decoded payload (for a request, a Frame) with its `deviations`; None if there is an
    error.
    error: why it cannot be decoded, with field and byte offset, or None.
    inner: the payload inside this one (a subscription's user data, a Connect worker's allocation),
        if it is known.
    """

    path: str
    kind: str
    version: int | None
    read_as: int | None
    value: Message | Frame | None
    error: str | None = None
    inner: Payload | None = None

    def to_json(self, *, secrets: bool = True) -> dict[str, Json]:
        """Make a JSON object: kind, version, readAs if it differs; value and deviations, or error.

        An inner payload follows its raw field, under the field's name and `Decoded`.
        secrets: whether secrets in it are shown.
        """
        obj: dict[str, Json] = {"kind": self.kind, "version": self.version}
        if self.error is not None or self.value is None or self.read_as is None:
            return obj | {"error": self.error}
        if self.read_as != self.version:
            obj["readAs"] = self.read_as
        if isinstance(self.value, Frame):
            return obj | {"value": _frame_json(self.value, secrets)}
        value = obj["value"] = shown_json(self.value, self.read_as, secrets)
        if self.inner is not None:
            attribute = self.inner.path.rpartition(".")[2]
            value[decoded_name(self.value, attribute)] = self.inner.to_json(secrets=secrets)
        if self.value.deviations is not None:
            obj["deviations"] = str(self.value.deviations)
        return obj

    def to_json_text(self, *, secrets: bool = True) -> str:
        """Write what `to_json` makes as text without blanks, several times as fast."""
        value, read_as = self.value, self.read_as
        if value is None or read_as is None or self.error is not None or isinstance(value, Frame):
            return json.dumps(self.to_json(secrets=secrets), separators=(",", ":"), allow_nan=False)
        doubtful = not secrets and value.deviations is not None
        text = to_json_text(value, read_as, secrets=secrets, doubtful=doubtful)
        if self.inner is not None:
            key = decoded_name(value, self.inner.path.rpartition(".")[2])
            text = f'{text[:-1]},"{key}":{self.inner.to_json_text(secrets=secrets)}}}'
        version = "null" if self.version is None else self.version
        also = "" if read_as == self.version else f',"readAs":{read_as}'
        deviations = (
            ""
            if value.deviations is None
            else f',"deviations":{encode_basestring_ascii(str(value.deviations))}'
        )
        kind = encode_basestring_ascii(self.kind)
        return f'{{"kind":{kind},"version":{version}{also},"value":{text}{deviations}}}'


@lru_cache(1 << 10)
def json_name(cls: Any, attribute: str) -> str:
    """Find the JSON name of a field of a struct's class."""
    return next(field.json_name for field in all_fields(cls) if field.attribute == attribute)


def decoded_name(struct: Structure, attribute: str) -> str:
    """Return the JSON key for the decoded form of a bytes field."""
    cls: Any = type(struct)  # mypy does not see that it is hashable
    return f"{json_name(cls, attribute)}Decoded"


def _frame_json(frame: Frame, secrets: bool) -> dict[str, Json]:
    return {
        "header": to_json(frame.header, frame.header_version),
        "name": type(frame.body).__name__,
        "body": shown_json(frame.body, frame.body_version, secrets),
    }
