"""Read-only lists of integers, which structs may share.

Interpreted in every build: mypyc does not support such classes.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn


class SharedInts(list[int]):
    """A read-only list of integers that other structs may share.

    It compares, prints and iterates as any list.
    The field that holds it can be set to a list of its own: `p.isr_nodes = [*p.isr_nodes, 4]`.
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "a decoded list of integers may be shared with other structs and cannot be changed: "
            "set the field to a list of its own"
        )

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> tuple[type[SharedInts], tuple[list[int]]]:
        return SharedInts, (list(self),)


NO_INTS: Final[list[int]] = SharedInts()
"""The shared empty list of int32."""
