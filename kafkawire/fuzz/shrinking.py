"""Makes a case smaller, as long as the broker does the same with it.

Case ─▶ simpler cases, the simplest first ─(one of them shows it too)─▶ Case ─▶ ...
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ..primitives import Structure
from ..protocol.fields import Field, fields_at
from .bodies import is_name
from .cases import Case, can_be_sent
from .faults import Fault, Kind
from .scopes import Scope, scope_of

SIMPLE: Final = {"string": ("", "x"), "bytes": (b"", b"\0"), "records": (b"", b"\0")}
KEPT_TEXT: Final = 32
"""Characters of a long text that are tried."""
Reach = Callable[[Any], Any]


def simpler(case: Case) -> Iterator[Case]:
    """Yield cases that are simpler than one by one change each; every one can be sent."""
    for each in _simpler(case):
        if each != case and can_be_sent(each):
            yield each


def _simpler(case: Case) -> Iterator[Case]:
    if case.fault is not None:
        yield case._replace(fault=None)
    keeps_names = scope_of(case.api) is Scope.NAMED
    if not keeps_names:
        yield case._replace(message=type(case.message)())
    if case.correlation_id != 1 or case.client_id != "":
        yield case._replace(correlation_id=1, client_id="")
    if case.fault is not None:
        for fault in _faults(case.fault):
            yield case._replace(fault=fault)
    changes = Changes(case.version, keeps_names)
    for change in changes.of(type(case.message), lambda message: message, case.message):
        message = copy.deepcopy(case.message)
        change(message)
        yield case._replace(message=message)


def _faults(fault: Fault) -> Iterator[Fault]:
    """Yield simpler faults of the same kind."""
    if fault.kind is Kind.BYTES:
        for start, end in _halves(len(fault.data)):
            yield fault._replace(data=fault.data[:start] + fault.data[end:])
    elif fault.kind is Kind.TRAILING and fault.number > 1:
        yield fault._replace(number=1)


def _halves(size: int) -> Iterator[tuple[int, int]]:
    """Yield parts of a sequence to leave out, large ones first."""
    length = size
    while length:
        for start in range(0, size, length):
            yield start, min(start + length, size)
        length //= 2


Change = Callable[[Any], None]


class Changes(NamedTuple):
    """What makes messages of a version simpler.

    keeps_names: whether names stay as they are, because the request changes what it names.
    """

    version: int
    keeps_names: bool

    def of(self, cls: type[Structure], reach: Reach, value: Any) -> Iterator[Change]:
        """Yield what makes fields of a struct simpler, outer ones first.

        reach: from the message to the struct.
        """
        plain: Any = cls()
        fields = fields_at(cls, self.version)
        if getattr(value, "unknown_tags", None) is not None:
            yield _assign(reach, "unknown_tags", None)
        for field in fields:
            if self.keeps_names and not field.is_array and is_name(field):
                continue
            held, default = getattr(value, field.attribute), getattr(plain, field.attribute)
            for replacement in _replacements(field, held, default):
                yield _assign(reach, field.attribute, replacement)
        for field in fields:
            held = getattr(value, field.attribute)
            if field.struct is None or held is None:
                continue
            if not field.is_array:
                yield from self.of(field.struct, _inner(reach, field.attribute), held)
                continue
            for number, each in enumerate(held):
                inner = _inner(reach, field.attribute, number)
                yield from self.of(field.struct, inner, each)


def _replacements(field: Field, held: Any, default: Any) -> Iterator[Any]:
    if field.is_array:
        if held:
            yield []
            for start, end in _halves(len(held)):
                yield held[:start] + held[end:]
    elif held != default:
        yield default
        if field.struct is None and held is not None:
            yield from _smaller(field, held)


def _smaller(field: Field, held: Any) -> Iterator[Any]:
    simple = SIMPLE.get(field.element)
    if simple is None or len(held) <= len(simple[-1]):
        return
    yield from simple
    if len(held) > KEPT_TEXT:
        yield held[:KEPT_TEXT]
    for start, end in _halves(len(held)) if field.element != "string" else ():
        if len(held) <= KEPT_TEXT or end - start > 1:
            yield held[:start] + held[end:]


def _assign(reach: Reach, attribute: str, value: Any) -> Change:
    def change(message: Any) -> None:
        setattr(reach(message), attribute, copy.deepcopy(value))

    return change


def _inner(reach: Reach, attribute: str, number: int | None = None) -> Reach:
    def inner(message: Any) -> Any:
        value = getattr(reach(message), attribute)
        return value if number is None else value[number]

    return inner
