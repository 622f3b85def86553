"""Writes and reads the objects of a state: a format that makes values of known classes only.

Reading makes objects of CLASSES and of generated messages, sets their attributes, and calls
nothing else; sizes are checked against the bytes that are left, so memory grows with the input.
Objects that are used twice are written once.

    value   = tag, payload          size = unsigned LEB128
    N T F   None, true, false       I     size, signed little-endian integer     D   8 bytes
    B A S   size, bytes: bytes, bytearray, text (UTF-8, surrogates kept)         R   size: number
    L U Z Y size, values: list, tuple, set, frozenset        M   size, pairs: dict
    E       text: name of an external object                 G   text: name of a class
    O       text: name of a class, payload of its kind
"""

# over 300 lines: writer and reader of one format, side by side

from __future__ import annotations

import re
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Final, TypeVar

from ..primitives.structure import Structure, rebuild

T = TypeVar("T")

DEPTH: Final = 200
"""Maximum nesting of values."""

SIZE_BITS: Final = 63

MESSAGES: Final = re.compile(r"kafkawire\.messages\.[a-z0-9_]+:[A-Za-z0-9_]+")
"""Names of generated classes."""

FACTORIES: Final[dict[str, type]] = {
    f"builtins:{each.__name__}": each for each in (list, dict, set, int)
}
"""What makes the values of a defaultdict, beside CLASSES."""

CAPTURE_CLASSES: Final = frozenset(
    {
        "exchanges.exchanges:Exchange",
        "exchanges.response_layouts:Layout",
        "frames.decoding:InFlightRequest",
        "frames.decoding:RawFrame",
        "rows:Located",
        "rows:Row",
        "proxy.layer:Begun",
        "proxy.layer:Held",
        "proxy.messages:Source",
        "proxy.messages:Step",
        "rows:Status",
        "tables.extraction.group_event:Protocol",
        "tables.groups.causes:Cause",
        "tables.groups.causes:Causes",
        "tables.groups.classic:ClassicGroups",
        "tables.groups.classic_members:Group",
        "tables.groups.classic_members:Member",
        "tables.groups.heartbeat:HeartbeatGroups",
        "tables.groups.heartbeat:_Group",
        "tables.groups.ownership:Handover",
        "tables.groups.ownership:Ownership",
        "tcp.events:GapReason",
        "tcp.limits:ReassemblyLimits",
        "tcp.out_of_order:Held",
        "tls.hellos:ClientHello",
        "tls.hellos:ServerHello",
        "tls.layer:First",
        "tls.outputs:Problem",
        "tls.records:Record",
        "tls.session:Epoch",
        "tls.session:KeyCache",
        "tls.side:Waiting",
    }
)
"""Values of a state beside the classes of STATE; below `kafkawire.capture`."""

CLASSES: Final = frozenset(
    {
        "kafkawire.messages.api_key:ApiKey",
        "kafkawire.primitives.limits:Limits",
        "kafkawire.primitives.shared:SharedInts",
        *(f"kafkawire.capture.{each}" for each in CAPTURE_CLASSES),
    }
)
APIS: Final = "kafkawire.capture.frames.apis:Apis"


class InvalidState(ValueError):
    """A state is damaged, or has an object of an unknown class."""


def name_of(cls: type) -> str:
    """Return the name of a class in a state."""
    return f"{cls.__module__}:{cls.__qualname__}"


def attributes(obj: object) -> dict[str, Any]:
    """Return the attributes of an object, compiled or not."""
    names = [
        name
        for cls in type(obj).__mro__
        for listed in ("__mypyc_attrs__", "__slots__")
        for name in _listed(vars(cls).get(listed, ()))
        if not (name.startswith("__") and name.endswith("__"))
    ]
    slots = {name: getattr(obj, name) for name in names if hasattr(obj, name)}
    return {**slots, **getattr(obj, "__dict__", {})}


def _listed(names: str | Iterable[str]) -> Iterable[str]:
    return (names,) if isinstance(names, str) else names


class Writer:
    """Writes a value. blanks: the classes of objects that may refer to themselves."""

    def __init__(self, external: Mapping[str, object], blanks: Mapping[type, Any]) -> None:
        self.out = bytearray()
        self._external = {id(each): name for name, each in external.items()}
        self._blanks = blanks
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []  # an id is unique while its object exists
        self._depth = 0

    def write(self, value: Any) -> None:
        """Append a value. Raises InvalidState for an object of an unknown class."""
        cls = type(value)
        if value is None or cls is bool:
            self.out += b"N" if value is None else b"T" if value else b"F"
        elif cls is int:
            self._sized(b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
        elif cls is float:
            self.out += b"D" + struct.pack("<d", value)
        elif (name := self._external.get(id(value))) is not None:
            self._text(b"E", name)
        elif (number := self._numbers.get(id(value))) is not None:
            self._size(b"R", number)
        else:
            self._depth += 1
            if self._depth > DEPTH:
                raise InvalidState(f"values are nested more than {DEPTH} times")
            self._object(cls, value)
            self._depth -= 1

    def _object(self, cls: type, value: Any) -> None:
        if cls in (bytes, bytearray):
            self._sized(b"B" if cls is bytes else b"A", value)
        elif cls is str:
            self._text(b"S", value)
        elif cls in (tuple, frozenset):
            self._values(b"U" if cls is tuple else b"Y", value)
        elif cls in (list, set):
            self._number(value)
            self._values(b"L" if cls is list else b"Z", value)
            return
        elif cls is dict:
            self._number(value)
            self._pairs(b"M", value)
            return
        else:
            self._instance(cls, value)
            return
        self._number(value)

    def _instance(self, cls: type, value: Any) -> None:
        name = name_of(cls)
        self._text(b"O", name)
        if cls in COLLECTIONS:
            self._number(value)
            COLLECTIONS[cls](self, value)
            return
        if cls in self._blanks or (name in CLASSES and not _is_called(cls)):
            self._number(value)
            self._pairs(b"M", attributes(value))
            return
        if name in CLASSES:
            self._values(b"U", _arguments(cls, value))
        elif isinstance(value, Structure) and MESSAGES.fullmatch(name):
            self._values(b"U", [getattr(value, each) for each in type(value).__match_args__])
        elif name == APIS:
            self._text(b"S", value.package.name)
        else:
            raise InvalidState(f"a state has no objects of {name}")
        self._number(value)

    def ordered(self, value: Mapping[Any, Any]) -> None:
        """Write the pairs of a mapping."""
        self._pairs(b"M", value)

    def default(self, value: defaultdict[Any, Any]) -> None:
        """Write the factory and the pairs of a defaultdict."""
        factory: Any = value.default_factory
        name = name_of(factory) if isinstance(factory, type) else repr(factory)
        if name not in FACTORIES and name not in CLASSES:
            raise InvalidState(f"a state has no defaultdict of {name}")
        self._text(b"G", name)
        self._pairs(b"M", value)

    def queue(self, value: deque[Any]) -> None:
        """Write the maximum length and the values of a deque."""
        self.write(value.maxlen)
        self._values(b"L", value)

    # -- parts

    def _number(self, value: object) -> None:
        self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)

    def _values(self, tag: bytes, values: Any) -> None:
        self._size(tag, len(values))
        for each in values:
            self.write(each)

    def _pairs(self, tag: bytes, pairs: Mapping[Any, Any]) -> None:
        self._size(tag, len(pairs))
        for key, each in pairs.items():
            self.write(key)
            self.write(each)

    def _text(self, tag: bytes, text: str) -> None:
        self._sized(tag, text.encode("utf-8", "surrogatepass"))

    def _sized(self, tag: bytes, data: bytes) -> None:
        self._size(tag, len(data))
        self.out += data

    def _size(self, tag: bytes, size: int) -> None:
        self.out += tag
        while size >= 0x80:
            self.out.append(size & 0x7F | 0x80)
            size >>= 7
        self.out.append(size)


COLLECTIONS: Final[dict[type, Callable[[Writer, Any], None]]] = {
    Counter: Writer.ordered,
    OrderedDict: Writer.ordered,
    defaultdict: Writer.default,
    deque: Writer.queue,
}
"""Collections with what writes their payload."""


class Reader:
    """Reads a value. Raises InvalidState. blanks: classes, with arguments to make an object."""

    def __init__(
        self,
        data: bytes,
        position: int,
        external: Mapping[str, object],
        blanks: Mapping[type, tuple[Any, ...]],
    ) -> None:
        self._data = data
        self._at = position
        self._external = external
        self._blanks = {name_of(cls): (cls, arguments) for cls, arguments in blanks.items()}
        self._known: list[object] = []
        self._depth = 0

    def whole(self) -> Any:
        """Return the value that is all of the rest."""
        try:
            value = self._value()
        except InvalidState:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, ImportError) as error:
            raise InvalidState(f"byte {self._at}: {error}") from error
        if self._at != len(self._data):
            raise InvalidState(f"byte {self._at}: bytes after the value")
        return value

    def _value(self) -> Any:
        tag = self._take(1)
        reading = READERS.get(tag)
        if reading is None:
            raise InvalidState(f"byte {self._at - 1}: unknown tag {tag!r}")
        self._depth += 1
        if self._depth > DEPTH + 1:
            raise InvalidState(f"values are nested more than {DEPTH} times")
        value = reading(self)
        self._depth -= 1
        return value

    def _integer(self) -> int:
        return int.from_bytes(self._sized(), "little", signed=True)

    def _float(self) -> float:
        (value,) = struct.unpack("<d", self._take(8))
        number: float = value
        return number

    def _bytes(self) -> bytes:
        return self._keep(self._sized())

    def _text(self) -> str:
        return self._keep(self._plain_text())

    def _tuple(self) -> tuple[Any, ...]:
        return self._keep((*self._values(),))

    def _frozenset(self) -> frozenset[Any]:
        return self._keep(frozenset(self._values()))

    def _list(self) -> list[Any]:
        restored = self._keep(list[Any]())
        restored.extend(self._values())
        return restored

    def _set(self) -> set[Any]:
        restored = self._keep(set[Any]())
        restored.update(self._values())
        return restored

    def _dict(self) -> dict[Any, Any]:
        restored = self._keep(dict[Any, Any]())
        restored.update(self._pairs())
        return restored

    def _known_value(self) -> object:
        return self._known[self._size()]

    def _external_value(self) -> object:
        return self._external[self._plain_text()]

    def _instance(self) -> Any:
        name = self._plain_text()
        if name in _COLLECTIONS:
            return self._collection(_COLLECTIONS[name])
        if name in self._blanks:
            cls, arguments = self._blanks[name]
            return self._filled(cls(*arguments))
        if name == APIS:
            return self._keep(_apis(self._tagged_text(b"S")))
        if name in CLASSES:
            cls = _class(name)
            if _is_called(cls):
                return self._keep(cls(*self._tagged(b"U")))
            return self._filled(cls.__new__(cls))
        if MESSAGES.fullmatch(name):
            cls = _class(name)
            if isinstance(cls, type) and issubclass(cls, Structure):
                return self._keep(rebuild(cls, [*self._tagged(b"U")]))
        raise InvalidState(f"byte {self._at}: a state has no objects of {name[:100]!r}")

    def _filled(self, instance: Any) -> Any:
        self._keep(instance)
        self._expect(b"M")
        for name, value in self._pairs():
            object.__setattr__(instance, name, value)
        return instance

    def _collection(self, cls: type) -> Any:
        if cls is deque:
            number = len(self._known)
            self._known.append(None)
            queue: deque[Any] = deque(maxlen=self._value())
            self._known[number] = queue
            queue.extend(self._tagged(b"L"))
            return queue
        restored: Any = cls()
        self._keep(restored)
        if cls is defaultdict:
            factory = self._tagged_text(b"G")
            restored.default_factory = _class(factory) if factory in CLASSES else FACTORIES[factory]
        self._expect(b"M")
        for key, value in self._pairs():
            restored[key] = value
        return restored

    # -- parts

    def _keep(self, value: T) -> T:
        self._known.append(value)
        return value

    def _values(self) -> Iterator[Any]:
        for _ in range(self._count()):
            yield self._value()

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        for _ in range(self._count()):
            key = self._value()
            yield key, self._value()

    def _tagged(self, tag: bytes) -> Iterator[Any]:
        self._expect(tag)
        return self._values()

    def _tagged_text(self, tag: bytes) -> str:
        self._expect(tag)
        return self._plain_text()

    def _expect(self, tag: bytes) -> None:
        if self._take(1) != tag:
            raise InvalidState(f"byte {self._at - 1}: expected tag {tag!r}")

    def _plain_text(self) -> str:
        return self._sized().decode("utf-8", "surrogatepass")

    def _sized(self) -> bytes:
        return self._take(self._count())

    def _count(self) -> int:
        """Read a size of what follows: each element has at least a byte."""
        size = self._size()
        if size > len(self._data) - self._at:
            raise InvalidState(f"byte {self._at}: size {size} exceeds the state")
        return size

    def _size(self) -> int:
        size = shift = 0
        while True:
            (byte,) = self._take(1)
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                return size
            shift += 7
            if shift >= SIZE_BITS:
                raise InvalidState(f"byte {self._at}: size is too long")

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise InvalidState(f"byte {self._at}: the state ends")
        data = self._data[self._at : end]
        self._at = end
        return data


READERS: Final[dict[bytes, Callable[[Reader], Any]]] = {
    b"N": lambda _: None,
    b"T": lambda _: True,
    b"F": lambda _: False,
    b"I": Reader._integer,
    b"D": Reader._float,
    b"B": Reader._bytes,
    b"A": lambda reader: reader._keep(bytearray(reader._sized())),
    b"S": Reader._text,
    b"U": Reader._tuple,
    b"Y": Reader._frozenset,
    b"L": Reader._list,
    b"Z": Reader._set,
    b"M": Reader._dict,
    b"R": Reader._known_value,
    b"E": Reader._external_value,
    b"O": Reader._instance,
}
"""Tag -> what reads its payload."""

_COLLECTIONS: Final = {name_of(cls): cls for cls in COLLECTIONS}


def _class(name: str) -> Any:
    """Return a class by its name, which is one of those that a state may have."""
    module, _, last = name.partition(":")
    return getattr(import_module(module), last)


def _is_called(cls: type) -> bool:
    """Return whether objects of a class are made of its arguments, and not of attributes."""
    return issubclass(cls, tuple | Enum) or "__reduce__" in vars(cls)


def _arguments(cls: type, value: Any) -> Any:
    """Return the arguments of a class that make an equal object."""
    if issubclass(cls, Enum):
        return (value.value,)
    return value if issubclass(cls, tuple) else value.__reduce__()[1]


def _apis(package: str) -> object:
    """Return the APIs of a package of messages that is imported already."""
    from .frames.apis import apis_of

    if package != "kafkawire.messages" and package not in sys.modules:
        raise InvalidState(f"messages of package {package[:100]!r}, which is not imported")
    return apis_of(package)
