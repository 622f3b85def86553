"""Errors of encoding name the first field that cannot be written, as the reference codec does."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

import kafkawire
from kafkawire.errors import EncodeError
from kafkawire.messages import REGISTRY
from kafkawire.primitives import Structure
from kafkawire.protocol.locate.locators import LOCATORS
from kafkawire.reference import encode
from tests import vectors
from tests.vectors import NAMES

UNFIT: Final[tuple[Any, ...]] = (
    None,
    True,
    1,
    -7,
    2**31,
    2**40,
    2**63,
    -(2**70),
    2**2000,
    float("nan"),
    1.5,
    "text",
    "n" * 40_000,
    "\ud800",
    "\udcff",
    b"",
    b"not sixteen",
    bytes(16),
    bytes(range(16)),
    [],
    [None],
    ["text", 5],
    [2**40],
    (),
    [(1, b"raw"), (1, b"raw")],
    [(2**31, b"raw")],
    [(0, "text")],
    object(),
)
"""Values that some type of field, or some version, does not allow."""
TRIES: Final = 8


def structs_of(value: object) -> Iterator[Structure]:
    """Iterate over a struct and those inside it."""
    if isinstance(value, list):
        for each in value:
            yield from structs_of(each)
    elif isinstance(value, Structure):
        yield value
        for name in value.__match_args__:
            yield from structs_of(getattr(value, name))


def spoil(message: Structure, rng: random.Random) -> None:
    """Set some fields to values that they may not have; compiled classes refuse wrong types.

    Lists are replaced by other types only where nothing else is wrong: of such a field that the
    version does not have, the encoder does not say which it is.
    """
    found = list(structs_of(message))
    count = rng.randint(1, 3)
    for _ in range(count):
        struct, value = rng.choice(found), rng.choice(UNFIT)
        name = rng.choice(struct.__match_args__)
        if count > 1 and isinstance(getattr(struct, name), list) and not isinstance(value, list):
            continue
        try:
            setattr(struct, name, value)
        except (TypeError, OverflowError):
            continue


def reference_error(message: Any, version: int, lenient: bool) -> EncodeError | None:
    try:
        encode(type(message).__name__, version, message, lenient=lenient)
    except EncodeError as error:
        return error
    return None


@pytest.mark.parametrize("name", NAMES)
def test_what_is_found_is_what_the_reference_finds(name: str) -> None:
    rng = random.Random(name)
    cls, info = REGISTRY.load(name), REGISTRY.get(name)
    rows = vectors.by_message("messages").get(name, [])
    rng.shuffle(rows)
    for row in rows[:4]:
        for _ in range(TRIES):
            message = cls.decode(bytes.fromhex(row["hex"]), row["version"])
            spoil(message, rng)
            version, lenient = rng.randint(info.first, info.last), rng.random() < 0.3
            try:
                message.encode(version, lenient=lenient)
            except EncodeError as error:
                found = error
            else:
                continue
            wanted = reference_error(message, version, lenient)
            assert (type(found), str(found)) == (type(wanted), str(wanted))


@pytest.mark.parametrize("name", NAMES)
def test_what_can_be_encoded_has_no_error(name: str) -> None:
    cls = REGISTRY.load(name)
    for row in vectors.by_message("messages").get(name, [])[::5]:
        message = cls.decode(bytes.fromhex(row["hex"]), row["version"])
        failure = ValueError("not of this message")
        assert LOCATORS.encode(failure, cls.__module__, message, row["version"], False) is None


IMPORTED = {
    "kafkawire.messages.request_header",
    "kafkawire.messages.response_header",
    "kafkawire.protocol",
    "kafkawire.protocol.fields",
    "kafkawire.protocol.locate",
    "kafkawire.protocol.locate.layouts",
    "kafkawire.protocol.locate.locators",
    "kafkawire.protocol.locate.plan",
    "kafkawire.protocol.locate.values",
    "kafkawire.protocol.locate.walk",
    "kafkawire.protocol.packages",
}
"""What the search for the field needs, beside messages: it takes a few milliseconds."""


def test_the_first_failure_imports_little() -> None:
    program = f"""
import sys
from kafkawire.messages.api_versions_request import ApiVersionsRequest
message = ApiVersionsRequest.decode(bytes.fromhex("0261026200"), 3)
message.encode(3)
message.client_software_name = "n" * 40_000
before = set(sys.modules)
try:
    message.encode(3)
except ValueError as error:
    found = str(error)
ends = "ApiVersionsRequest.client_software_name: a string of 40000 bytes; 32767 is the most"
assert found == ends, found
more = set(sys.modules) - before
assert more <= {IMPORTED}, more
names = {{name.partition(".")[0] for name in sys.modules}}
assert not {{"construct", "kafkawire_codegen", "jinja2"}} & names
assert not {{"re", "json", "kafkawire.reference"}} & more
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_field_that_the_encoder_ignores_is_not_named() -> None:
    topics = [{"name": "a"}, {"name": "b"}]
    message: Any = kafkawire.from_json("MetadataRequest", 4, {"topics": topics})
    message.topics[1].topic_id = bytes(range(16))
    message.allow_auto_topic_creation = False
    with pytest.raises(EncodeError) as caught:
        message.encode(3)
    assert caught.value.path == "MetadataRequest.allow_auto_topic_creation"
