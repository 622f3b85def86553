"""Lists of integers that cannot be changed, so that structs may share them.

Interpreted in every build: mypyc knows no such classes.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn


class SharedInts(list[int]):
    """A list of integers that other structs may hold too: it compares, prints and iterates as any
    list, and refuses to be changed.

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
"""What stands for every empty list of int32."""
