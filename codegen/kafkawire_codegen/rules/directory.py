"""Rules for all messages of a directory together: names, api keys, and pairs.

The api keys of records are counted per topic, which a schema does not name, so only requests and
responses are checked for duplicate keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..form import WrittenMessage
from .messages import SUFFIXES
from .rule import Directory, DirectoryRule

Findings = Iterable[tuple[WrittenMessage, str, str]]
PARTNERS: Final = {
    "request": "response",
    "response": "request",
    "coordinator-key": "coordinator-value",
    "coordinator-value": "coordinator-key",
}


def _duplicate_message(directory: Directory) -> Findings:
    seen: dict[str, WrittenMessage] = {}
    for message in directory.messages:
        first = seen.setdefault(message.schema.name.lower(), message)
        if first is not message and "name" not in message.unread:
            reason = f"{message.schema.name} is defined in {first.node.location.file} already"
            yield message, "name", reason


def _duplicate_api_key(directory: Directory) -> Findings:
    seen: dict[tuple[str, int | None], WrittenMessage] = {}
    for message in directory.messages:
        schema = message.schema
        if schema.type in ("request", "response") and schema.api_key is not None:
            first = seen.setdefault((schema.type, schema.api_key), message)
            if first is not message:
                reason = f"{schema.api_key} is the key of {first.schema.name} already"
                yield message, "apiKey", reason


def _partner_name(message: WrittenMessage) -> str | None:
    """Name the other message of the pair; None if there is none, or it is misnamed."""
    partner = PARTNERS.get(message.schema.type)
    suffix = SUFFIXES.get(message.schema.type, "")
    if partner is None or not message.schema.name.endswith(suffix):
        return None
    return message.schema.name.removesuffix(suffix) + SUFFIXES[partner]


def _pairs(directory: Directory) -> Iterator[tuple[WrittenMessage, WrittenMessage]]:
    """Each pair, the later first: response and request, value and key."""
    by_name = {m.schema.name: m for m in directory.messages}
    for message in directory.messages:
        name = _partner_name(message)
        if message.schema.type in ("response", "coordinator-value") and name in by_name:
            yield message, by_name[name]


def _unpaired(directory: Directory) -> Findings:
    names = directory.unread | {m.schema.name for m in directory.messages}
    for message in directory.messages:
        partner = _partner_name(message)
        if partner is not None and partner not in names:
            yield message, "name", f"{message.schema.name} is alone: {partner} is missing"


def _pair_api_key(directory: Directory) -> Findings:
    for later, earlier in _pairs(directory):
        ours, theirs = later.schema.api_key, earlier.schema.api_key
        has_both = None not in (ours, theirs)  # else api-key-missing
        if has_both and "apiKey" not in later.unread | earlier.unread and ours != theirs:
            yield later, "apiKey", f"the key is {ours}, but {theirs} in {earlier.schema.name}"


def _pair_versions(directory: Directory) -> Findings:
    for later, earlier in _pairs(directory):
        ours, theirs = later.schema.valid_versions, earlier.schema.valid_versions
        unread = "validVersions" in later.unread | earlier.unread
        if later.schema.type == "response" and not unread and ours != theirs:
            yield later, "validVersions", f"{ours} is valid, but {theirs} in {earlier.schema.name}"


DIRECTORY_RULES: Final = (
    DirectoryRule("duplicate-message", "a message is defined once", _duplicate_message),
    DirectoryRule("duplicate-api-key", "no two requests share an api key", _duplicate_api_key),
    DirectoryRule("unpaired", "requests have responses, coordinator keys have values", _unpaired),
    DirectoryRule("pair-api-key", "a pair shares its api key", _pair_api_key),
    DirectoryRule("pair-versions", "request and response have the same versions", _pair_versions),
)
