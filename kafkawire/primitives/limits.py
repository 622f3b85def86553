"""How much hostile data may cost.

Law: nothing is allocated for a length that was not first compared with the bytes left; these limits
bound the rest. Nesting needs none: a schema cannot contain itself (the generator refuses it), so
depth is fixed when code is generated.
"""

from typing import Final, NamedTuple


class Limits(NamedTuple):
    """Bounds of one decode.

    max_frame_bytes: the largest size a frame may announce (Kafka's own default for a request is 100
    MiB). max_elements: array elements and unknown tagged fields in one message, all arrays
    together; an element costs
        some 100 bytes of memory, so the default bounds a message made of empty elements to about 1
        GiB.
    """

    max_frame_bytes: int = 104_857_600
    max_elements: int = 10_000_000


DEFAULT_LIMITS: Final = Limits()
