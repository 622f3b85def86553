"""Rules for the head of one message: name, type, api key, versions, listeners."""

from __future__ import annotations

from typing import Final

from ..dialect import LISTENERS, MESSAGE_TYPES
from ..form import WrittenMessage
from ..keys import did_you_mean
from ..versions import NEWEST, NONE, Versions
from .names import wrong_message_name
from .rule import MessageRule

LAST_API_KEY: Final = 0x7FFF
KEYED_TYPES: Final = ("request", "response", "metadata", "coordinator-key", "coordinator-value")
SUFFIXES: Final = {
    "request": "Request",
    "response": "Response",
    "coordinator-key": "Key",
    "coordinator-value": "Value",
}
"""Message type -> suffix of the names of such messages; the rest pairs them."""


def _name(message: WrittenMessage) -> str | None:
    return wrong_message_name(message.schema.name)


def _type(message: WrittenMessage) -> str | None:
    type_ = message.schema.type
    if type_ in MESSAGE_TYPES:
        return None
    names = ", ".join(MESSAGE_TYPES)
    return f"unknown message type {type_!r} ({names}){did_you_mean(type_, MESSAGE_TYPES)}"


def _suffix(message: WrittenMessage) -> str | None:
    suffix = SUFFIXES.get(message.schema.type, "")
    if message.schema.name.endswith(suffix) and message.schema.name != suffix:
        return None
    return f"the name of a {message.schema.type} ends in {suffix}, with the API's before it"


def _file_name(message: WrittenMessage) -> str | None:
    file = message.node.location.stem
    if file == message.schema.name:
        return None
    return f"{message.schema.name} stands in {file}.json: its file is {message.schema.name}.json"


def _api_key_missing(message: WrittenMessage) -> str | None:
    schema = message.schema
    if schema.type not in KEYED_TYPES or schema.api_key is not None:
        return None
    return f'a {schema.type} needs an "apiKey"'


def _api_key_misplaced(message: WrittenMessage) -> str | None:
    schema = message.schema
    if schema.type not in ("header", "data") or schema.api_key is None:
        return None
    return f"a {schema.type} has no api key: leave it out"


def _api_key_range(message: WrittenMessage) -> str | None:
    key = message.schema.api_key
    if key is None or 0 <= key <= LAST_API_KEY:
        return None
    return f"an api key is 0 to {LAST_API_KEY}, not {key}"


def _unknown_listener(message: WrittenMessage) -> str | None:
    unknown = [name for name in message.schema.listeners if name not in LISTENERS]
    if not unknown:
        return None
    names = ", ".join(LISTENERS)
    return f"unknown listener {unknown[0]!r} ({names}){did_you_mean(unknown[0], LISTENERS)}"


def _listeners_misplaced(message: WrittenMessage) -> str | None:
    if not message.schema.listeners or message.schema.type == "request":
        return None
    return f"a {message.schema.type} has no listeners; only a request has"


def _unstable_misplaced(message: WrittenMessage) -> str | None:
    if not message.schema.latest_version_unstable or message.schema.type == "request":
        return None
    return f"a {message.schema.type} has no unstable version of its own; its request says so"


def _header_versions_misplaced(message: WrittenMessage) -> str | None:
    if message.schema.type in ("request", "response"):
        return None
    if "headerVersions" not in message.node.members:
        return None
    return f"a {message.schema.type} travels without a header"


def _header_versions_gap(message: WrittenMessage) -> str | None:
    member = message.node.members.get("headerVersions")
    if member is None:
        return None
    expected = 0
    for versions in sorted(map(Versions.parse, member.node.members), key=lambda v: v.low):
        if versions.low != expected:
            return f"{versions} must begin at {expected}: the ranges follow each other from 0"
        expected = versions.high + 1
    if expected <= NEWEST:
        return f"the last range must be open-ended: no header is named from {expected} on"
    return None


def _valid_open(message: WrittenMessage) -> str | None:
    valid = message.schema.valid_versions
    if not valid.open_ended:
        return None
    return f"valid versions end: {valid.low}-N is right, with N the newest, not {valid}"


def _flexible_missing(message: WrittenMessage) -> str | None:
    if "flexibleVersions" in message.node.members or not message.schema.valid_versions:
        return None
    return 'without "flexibleVersions" no version is flexible: say "none", or "0+" if it is new'


def _flexible_beyond(message: WrittenMessage) -> str | None:
    flexible, valid = message.schema.flexible_versions, message.schema.valid_versions
    if not flexible or not valid or flexible.low <= valid.high + 1:
        return None
    return f"flexible from {flexible.low} on, but only {valid} valid"


def _flexible_closed(message: WrittenMessage) -> str | None:
    flexible = message.schema.flexible_versions
    if not flexible or flexible.open_ended:
        return None
    return f"flexible versions cannot end: {flexible.low}+ or none is right, not {flexible}"


def _deprecated_outside(message: WrittenMessage) -> str | None:
    schema = message.schema
    if schema.valid_versions.covers(schema.deprecated_versions):
        return None
    return f"{schema.deprecated_versions} is deprecated, but only {schema.valid_versions} valid"


def _coordinator_key_versions(message: WrittenMessage) -> str | None:
    schema = message.schema
    if schema.type != "coordinator-key" or schema.valid_versions in (Versions(0, 0), NONE):
        return None
    return "the int16 before a coordinator key is its api key: its only version is 0"


def _coordinator_key_flexible(message: WrittenMessage) -> str | None:
    schema = message.schema
    if schema.type != "coordinator-key" or not schema.flexible_versions:
        return None
    return "a coordinator key is compared as bytes and has no tagged fields: none is right"


MESSAGE_RULES: Final = (
    MessageRule("message-name", "a message name begins with a capital", "name", (), _name),
    MessageRule("message-type", "the type of a message is a known one", "type", (), _type),
    MessageRule("message-suffix", "the name ends as its type demands", "name", ("type",), _suffix),
    MessageRule("file-name", "the file is named as the message", "name", (), _file_name),
    MessageRule(
        "api-key-missing", "what is found by a key has one", "apiKey", ("type",), _api_key_missing
    ),
    MessageRule(
        "api-key-misplaced", "data and headers have no key", "apiKey", ("type",), _api_key_misplaced
    ),
    MessageRule("api-key-range", "an api key is an int16 from 0", "apiKey", (), _api_key_range),
    MessageRule(
        "unknown-listener", "a listener is a known one", "listeners", (), _unknown_listener
    ),
    MessageRule(
        "listeners-misplaced",
        "only a request has listeners",
        "listeners",
        ("type",),
        _listeners_misplaced,
    ),
    MessageRule(
        "unstable-misplaced",
        "only a request says that its newest version is unstable",
        "latestVersionUnstable",
        ("type",),
        _unstable_misplaced,
    ),
    MessageRule(
        "header-versions-misplaced",
        "only requests and responses travel with a header",
        "headerVersions",
        ("type",),
        _header_versions_misplaced,
    ),
    MessageRule(
        "header-versions-gap",
        "each message version has one header version",
        "headerVersions",
        (),
        _header_versions_gap,
    ),
    MessageRule("valid-versions-open", "valid versions end", "validVersions", (), _valid_open),
    MessageRule(
        "flexible-versions-missing",
        "a message says which versions are flexible",
        "flexibleVersions",
        ("validVersions",),
        _flexible_missing,
    ),
    MessageRule(
        "flexible-versions-beyond",
        "flexible versions begin among the valid ones, or with the next",
        "flexibleVersions",
        ("validVersions",),
        _flexible_beyond,
    ),
    MessageRule(
        "flexible-versions-closed",
        "flexible versions are open-ended or none",
        "flexibleVersions",
        (),
        _flexible_closed,
    ),
    MessageRule(
        "deprecated-versions-outside",
        "what is deprecated is still valid",
        "deprecatedVersions",
        ("validVersions",),
        _deprecated_outside,
    ),
    MessageRule(
        "coordinator-key-versions",
        "a coordinator key has version 0 alone",
        "validVersions",
        ("type",),
        _coordinator_key_versions,
    ),
    MessageRule(
        "coordinator-key-flexible",
        "a coordinator key is not flexible",
        "flexibleVersions",
        ("type",),
        _coordinator_key_flexible,
    ),
)
