"""Exercises every class of a generated package with every verb, at every version.

Run as a program, it is what a user's process does with an installed package:

    python -m tests.codegen.exercise mine.messages schemas/
"""

from __future__ import annotations

import copy
import importlib
import math
import pickle
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

from kafkawire.errors import DecodeError, EncodeError, UnsupportedVersion
from kafkawire.primitives import Message, Reader, Writer
from kafkawire.protocol.json_form import to_json
from kafkawire.reference.graph import graph
from kafkawire.reference.tree import Sink
from kafkawire_codegen import model, naming
from kafkawire_codegen.dialect import FieldSchema
from kafkawire_codegen.layout import Fields, struct_fields
from kafkawire_codegen.schema import load_directory
from kafkawire_codegen.wire_types import WIRE_TYPES, uuid_bytes

TEXTS: Final = ("", "x", "żółć", "a" * 40, "\U0001f600")
WRONG: Final = object()
"""A value that no field takes."""


def exercise(package: str, schemas: Path, *, seed: int = 0, rounds: int = 2) -> int:
    """Check every message of a package against its schema; return how many instances were made."""
    made = 0
    for schema in load_directory(schemas):
        message = model.build(schema)
        cls = importlib.import_module(package).REGISTRY.load(message.name)
        module = sys.modules[cls.__module__]
        check_defaults(module, message, struct_fields(schema))
        check_verbs(cls, message)
        rng = random.Random(f"{message.name} {seed}")
        for version in range(message.versions.low, message.versions.high + 1):
            for number in range(rounds + 1):
                # the first one has every field at its default
                values = fill(module, message.root, version, rng) if number else {}
                check_instance(cls, message, version, cls(**values))
                made += 1
            check_wrong_values(cls, message, version)
    return made


# -- defaults


def check_defaults(
    module: ModuleType, message: model.Message, written: Mapping[str, Fields]
) -> None:
    """Compare the defaults of every struct with what the schema's text says."""
    for struct in message.structs:
        by_name = {field.name: field for field in written[struct.name]}
        instance = getattr(module, struct.name)()
        assert set(instance.__match_args__) == set(attributes(struct)), struct.name
        for field in struct.fields:
            value = getattr(instance, field.attribute)
            wanted = by_name[field.kafka_name]
            where = f"{struct.name}.{field.kafka_name}"
            if is_default_struct(wanted):
                assert type(value) is getattr(module, wanted.element), where
            else:
                assert same(value, default(wanted)), f"{where}: {value!r}, not {default(wanted)!r}"


def attributes(struct: model.Struct) -> list[str]:
    return [naming.attribute(f.kafka_name) for f in struct.fields] + ["unknown_tags"] * bool(
        struct.flexible
    )


def is_default_struct(field: FieldSchema) -> bool:
    return field.type not in WIRE_TYPES and not field.is_array and field.default != "null"


def default(field: FieldSchema) -> Any:  # noqa: PLR0911 - one for each type
    """Read a default as the dialect says, apart from the generator's own reading."""
    text = field.default or ""
    if text == "null" or (field.type == "records" and field.nullable_versions):
        return None
    if field.is_array:
        return []
    match field.type:
        case "bool":
            return text == "true"
        case "string":
            return text
        case "bytes" | "records":
            return b""
        case "uuid":
            return uuid_bytes(text) if text else bytes(16)
        case "float64":
            return float(text or 0)
        case _:
            return int(text or "0", 0)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, NaN equal to itself, and of one type."""
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return type(one) is type(other) and bool(one == other)


# -- values


def fill(
    module: ModuleType, struct: model.Struct, version: int, rng: random.Random
) -> dict[str, Any]:
    """Make values for the fields that a version has, as keywords of the struct's class."""
    made = {
        f.attribute: field_value(module, f, version, rng)
        for f in struct.fields
        if version in f.versions
    }
    if version in struct.flexible and rng.random() < 0.3:
        made["unknown_tags"] = [(1000 + rng.randrange(50), rng.randbytes(3))]
    return made


def field_value(module: ModuleType, f: model.Field, version: int, rng: random.Random) -> Any:
    if version in f.nullable and rng.random() < 0.3:
        return None
    if not f.is_array:
        return element_value(module, f, version, rng)
    if f.struct is not None and is_nothing(f.struct, version):
        return []  # a reader takes no more elements than bytes
    return [element_value(module, f, version, rng) for _ in range(rng.randrange(3))]


def is_nothing(struct: model.Struct, version: int) -> bool:
    """Whether a struct takes no bytes in a version, which has none of its fields."""
    plain = [f for f in struct.fields if version in f.plain]
    return version not in struct.flexible and all(
        f.is_struct_value
        and version not in f.nullable
        and f.struct is not None
        and is_nothing(f.struct, version)
        for f in plain
    )


def element_value(module: ModuleType, f: model.Field, version: int, rng: random.Random) -> Any:
    if f.struct is not None:
        return getattr(module, f.struct.name)(**fill(module, f.struct, version, rng))
    assert f.wire is not None
    if f.wire.low is not None and f.wire.high is not None:
        return rng.choice((f.wire.low, f.wire.high, rng.randint(f.wire.low, f.wire.high)))
    match f.wire.name:
        case "bool":
            return rng.random() < 0.5
        case "string":
            return rng.choice(TEXTS)
        case "uuid":
            return rng.randbytes(16)
        case "float64":
            return rng.choice((2.5, -1.5, math.inf, rng.random()))  # 0.0 equals -0.0
        case _:
            return rng.randbytes(rng.randrange(9))


# -- verbs


def check_verbs(cls: Any, message: model.Message) -> None:
    """Try what needs no version: identity, copies, text."""
    instance = cls()
    assert isinstance(instance, Message)
    assert repr(instance).startswith(f"{cls.__name__}(")
    assert instance != 1
    assert instance != object()
    for attribute in attributes(message.root):
        assert f"{attribute}=" in repr(instance)
    again = pickle.loads(pickle.dumps(instance))
    assert repr(again) == repr(instance) == repr(copy.deepcopy(instance))
    for version in (message.versions.low - 1, message.versions.high + 1):
        for call in (
            lambda version=version: cls.decode(b"", version),
            lambda version=version: instance.encode(version),
        ):
            raises(UnsupportedVersion, call)


def raises(kinds: type[Exception] | tuple[type[Exception], ...], call: Any) -> Exception:
    try:
        call()
    except kinds as error:
        return error
    raise AssertionError(f"{call} did not raise {kinds}")


def check_instance(cls: Any, message: model.Message, version: int, instance: Any) -> None:
    """Hold what is written and read against the reference codec, and try the other verbs."""
    where = f"{message.name} {version}: {instance!r}"
    try:
        wanted = reference(message, version, instance)
    except EncodeError:  # a default that this version cannot write, such as null
        raises(EncodeError, lambda: instance.encode(version))
        return
    data = instance.encode(version)
    assert data == wanted, where
    writer = Writer()
    instance.encode_to(writer, version)
    assert writer.getvalue() == data, where
    again = cls.decode(data, version)
    # NaN is not equal to itself, and some message has it as a default
    assert again == instance or "nan" in repr(instance), f"{where}, not {again!r}"
    assert repr(again) == repr(instance), f"{where}, not {again!r}"
    differs = again != instance  # has a method of its own
    assert not differs or "nan" in repr(instance), where
    assert again.encode(version) == data, where
    reader = Reader(b"xx" + data, 2)
    assert repr(cls.decode_from(reader, version)) == repr(instance), where
    assert repr(pickle.loads(pickle.dumps(again))) == repr(instance), where
    assert set(to_json(again, version)) <= {f.json_name for f in message.root.fields} | {
        "_unknownTaggedFields"
    }
    raises(DecodeError, lambda: cls.decode(data + b"\0", version))
    trailing = cls.decode(data + b"\0", version, lenient=True)
    assert trailing.deviations.trailing == b"\0", where
    assert trailing.encode(version, lenient=True) == data + b"\0", where
    assert pickle.loads(pickle.dumps(trailing)).deviations == trailing.deviations
    if data:
        raises(DecodeError, lambda: cls.decode(data[:-1], version))
    raises(TypeError, lambda: cls.decode("text", version))


def check_wrong_values(cls: Any, message: model.Message, version: int) -> None:
    """A value of a wrong type is an error, in the constructor or when it is written."""
    raises(TypeError, lambda: cls(no_such_field=1))
    for f in message.root.fields:
        # what is written as the truth of a value takes any
        if version in f.versions and f.type != "bool":

            def build(attribute: str = f.attribute) -> None:
                cls(**{attribute: WRONG}).encode(version)

            raises((TypeError, EncodeError), build)


def reference(message: model.Message, version: int, instance: Any) -> bytes:
    """Encode with the reference codec, which knows no generated code."""
    sink = Sink([message.name], module=type(instance).__module__)
    graph(message, version).piece.build_stream(instance, sink)
    return sink.getvalue()


if __name__ == "__main__":
    kind = "interpreted" if isinstance(Message.encode, FunctionType) else "compiled"
    print(exercise(sys.argv[1], Path(sys.argv[2])), f"messages, {kind} kafkawire")
