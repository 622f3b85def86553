"""Makes a dissector for Wireshark and tshark, in Lua, of every API and version.

One file; the tables are generated, what interprets them is written by hand (`templates`).

    messages --names--> fields --tables--> tables --templates--> kafkawire.lua
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ...model import Message
from ...output import File
from ...templating import fill
from .. import InvalidName, Source
from . import lua
from .names import Names, is_protocol_name
from .tables import Api, field_chunks, side

NAME: Final = "kafkawire"
TEMPLATE: Final = "wireshark/dissector.lua.j2"


def files(source: Source) -> Iterable[File]:
    """Make the dissector; InvalidName if the name cannot be that of a protocol."""
    if not is_protocol_name(source.name):
        raise InvalidName(
            f"invalid protocol name {source.name!r}: a small letter, then up to 31 small letters, "
            "digits and underscores"
        )
    apis_by_key = list(apis(source.messages))
    names = named(apis_by_key)
    text = fill(
        TEMPLATE,
        name=source.name,
        chunks=field_chunks(names),
        apis=apis_by_key,
        side=lambda message: "nil" if message is None else side(message, names),
        errors={error.code: error.name for error in source.supplied.errors},
        string=lua.string,
    )
    return [File(f"{source.name}.lua", text)]


def named(known: Iterable[Api]) -> Names:
    """Name the fields of APIs."""
    names = Names()
    for api in known:
        for message in (api.request, api.response):
            if message is not None:
                names.add(message)
    return names


def apis(messages: Iterable[Message]) -> Iterator[Api]:
    """Pair requests with responses, in the order of their keys."""
    pairs: dict[int, dict[str, Message]] = {}
    for message in messages:
        if message.api_key is not None and message.type in ("request", "response"):
            pairs.setdefault(message.api_key, {})[message.type] = message
    for key, sides in sorted(pairs.items()):
        request, response = sides.get("request"), sides.get("response")
        first = request or response
        assert first is not None
        yield Api(key, first.api or first.name, request, response)
