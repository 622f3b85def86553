"""How much hostile data may cost.

Law: nothing is allocated for a length that was not first compared with the bytes left; these limits
bound the rest. Nesting needs none: a schema cannot contain itself (the generator refuses it), so
depth is fixed when code is generated.
"""

from typing import Final, NamedTuple

UNLIMITED: Final = 1 << 62

FREE_OBJECTS: Final = 100_000
"""Objects that a message of any size may have: about 15 MB."""


class Limits(NamedTuple):
    """Bounds of one decode.

    max_frame_bytes: the largest size a frame may announce (Kafka's own default for a request is 100
    MiB). max_elements: array elements and unknown tagged fields in one message, all arrays
    together. bytes_per_object: how many bytes a message must have for each object in it, beyond the
    first 100 000 (FREE_OBJECTS); an object is an array, a struct in an array or an unknown tagged
    field, and takes some 100 bytes of memory. The densest messages that brokers and clients write
    have 6 bytes an object; empty structs and arrays, of which hostile ones consist, 1 or 2. 0 for
    no such limit.
    """

    max_frame_bytes: int = 104_857_600
    max_elements: int = 10_000_000
    bytes_per_object: int = 4


DEFAULT_LIMITS: Final = Limits()
NO_LIMITS: Final = Limits(UNLIMITED, UNLIMITED, 0)


def elements_within(limits: Limits, size: int) -> int:
    """Return how many elements and arrays together keep a body of `size` bytes within all limits,
    for those who read it without making objects.
    """
    each = limits.bytes_per_object
    if size <= FREE_OBJECTS or each == 0:  # an object takes a byte at least
        return limits.max_elements
    return min(limits.max_elements, FREE_OBJECTS + size // each)
