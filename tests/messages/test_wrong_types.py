"""Values of a wrong type, in every field of every message: an EncodeError that names the field.

Where classes are compiled, some are refused before, by the class: setting the attribute is a
TypeError.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import pytest

from kafkawire.errors import EncodeError
from kafkawire.messages import REGISTRY
from kafkawire.primitives import Message, Structure
from kafkawire.reference.schemas import message_model
from kafkawire_codegen import model
from tests import vectors
from tests.fuzzing import SOAK
from tests.messages.test_refusals import Slot, slots
from tests.vectors import NAMES


class Other(Structure):
    """A struct of no message, with the attributes of any."""

    def __getattr__(self, name: str) -> Any:
        return 0


WRONG: Final[tuple[Any, ...]] = (
    None,
    {},
    [],
    [{}],
    [None],
    [[]],
    ["x"],
    (),
    "x",
    b"x",
    bytearray(b"0123456789abcdef"),
    1,
    1.5,
    10**400,
    True,
    object(),
    Other(),
    [Other()],
)

NUMBERS: Final = {
    "float64": (int, float),
    "string": (str,),
    "bytes": (bytes,),
    "records": (bytes,),
    "uuid": (bytes,),
    "bool": (bool,),
}


def some(path: str) -> tuple[Any, ...]:
    """Half of the wrong values for a field, others for others; all in `make soak`."""
    return WRONG[zlib.crc32(path.encode()) % 2 :: 2] if SOAK == 1 else WRONG


def is_right(f: model.Field, value: Any) -> bool:
    """Whether a value is of a type that the field takes, in any version."""
    if value is None:
        return f.may_be_none
    if f.is_array:
        return isinstance(value, list) and all(is_one(f, item) for item in value)
    return is_one(f, value)


def is_one(f: model.Field, value: Any) -> bool:
    if f.wire is None:
        return False
    if value == 10**400:
        return False
    return isinstance(value, NUMBERS.get(f.wire.name, (int,)))


def newest(name: str) -> tuple[int, Message] | None:
    """Return the full vector of the newest version that has one."""
    rows = [r for r in vectors.by_message("messages").get(name, []) if r["kind"] == "full"]
    if not rows:
        return None
    row = max(rows, key=lambda r: r["version"])
    return row["version"], vectors.instance(row)


def refuse(message: Message, version: int, slot: Slot, value: Any) -> None:
    """Expect that a message with a wrong value is refused by name."""
    before = getattr(slot.owner, slot.field.attribute)
    scenario = f"{slot.path} v{version} = {value!r:.40}"
    try:
        setattr(slot.owner, slot.field.attribute, value)
    except TypeError:
        return
    error = refusal(message, version)
    setattr(slot.owner, slot.field.attribute, before)
    assert error is not None, f"{scenario} was encoded"
    assert error.path.startswith(slot.path), f"{scenario}: {error}"


def refusal(message: Message, version: int) -> EncodeError | None:
    try:
        message.encode(version)
    except EncodeError as error:
        return error
    return None


@pytest.mark.parametrize("name", NAMES)
def test_a_value_of_a_wrong_type_is_refused_by_the_path_of_its_field(name: str) -> None:
    found = newest(name)
    if found is None:
        return
    version, message = found
    for slot in slots(message_model(name).root, message, version, name):
        f = slot.field
        for value in some(slot.path):
            if version in f.versions and not is_right(f, value):
                refuse(message, version, slot, value)
        if version in f.versions and f.struct is not None and f.is_array:
            for other in wrong_structs(message, type(getattr(slot.owner, f.attribute)[0])):
                refuse(message, version, slot, [other])


def wrong_structs(message: Message, right: type) -> list[Structure]:
    """Make structs that are none of those an array holds: the message itself, and another's."""
    made = [message, REGISTRY.load("RequestHeader")()]
    return [one for one in made if type(one) is not right]


WRONG_TAGS: Final[tuple[Any, ...]] = (
    {},
    "x",
    1,
    [1],
    [(1,)],
    [("1", b"")],
    [(1, "x")],
    [(1, None)],
    [[1, b""]],
)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_unknown_tags_are_refused(name: str) -> None:
    info = REGISTRY.get(name)
    if not info.is_flexible(info.last):
        return
    for wrong in WRONG_TAGS:
        message = REGISTRY.load(name)()
        try:
            message.unknown_tags = wrong
        except TypeError:
            continue
        with pytest.raises(EncodeError) as caught:
            message.encode(info.last)
        assert caught.value.path.startswith(f"{name}.unknown_tags"), wrong


def test_an_attribute_that_is_missing_is_named() -> None:
    message = REGISTRY.load("HeartbeatRequest")()
    try:
        del message.member_id
    except AttributeError:
        return  # compiled: attributes are always there
    with pytest.raises(EncodeError, match="HeartbeatRequest"):
        message.encode(4)


def test_a_whole_dict_in_the_place_of_a_struct_is_named() -> None:
    message = REGISTRY.load("DescribeTopicPartitionsRequest")()
    try:
        message.cursor = {"topic_name": "", "partition_index": 0, "unknown_tags": None}
    except TypeError:
        return
    with pytest.raises(EncodeError, match=r"^DescribeTopicPartitionsRequest\.cursor: is of type"):
        message.encode(0)
