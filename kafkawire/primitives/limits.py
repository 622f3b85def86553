"""Limits on decoding, for hostile data.

Every length is compared with the bytes left before memory is allocated; these limits bound the
rest. Nesting needs none: a schema cannot contain itself (the generator rejects it), so depth is
fixed when code is generated.
"""

from typing import Final, NamedTuple

UNLIMITED: Final = 1 << 62

FREE_OBJECTS: Final = 100_000
"""Objects allowed in a message of any size: about 15 MB."""


class Limits(NamedTuple):
    """Limits of one decode.

    max_frame_bytes: the largest declared size of a frame (Kafka's default for a request is 100
    MiB). max_elements: array elements and unknown tagged fields in one message, all arrays
    together. bytes_per_object: how many bytes a message must have for each object in it, beyond the
    first 100 000 (FREE_OBJECTS); an object is an array, a struct in an array or an unknown tagged
    field, and takes about 100 bytes of memory. Real messages have at least 6 bytes per object;
    empty structs and arrays, as in hostile messages, have 1 or 2. 0 is no limit.
    """

    max_frame_bytes: int = 104_857_600
    max_elements: int = 10_000_000
    bytes_per_object: int = 4


DEFAULT_LIMITS: Final = Limits()
NO_LIMITS: Final = Limits(UNLIMITED, UNLIMITED, 0)


def elements_within(limits: Limits, size: int) -> int:
    """Return how many elements and arrays together keep a body of `size` bytes within all limits.

    It is for those who read the body without making objects.
    """
    each = limits.bytes_per_object
    if size <= FREE_OBJECTS or each == 0:  # an object has at least one byte
        return limits.max_elements
    return min(limits.max_elements, FREE_OBJECTS + size // each)
