"""Decodes and encodes eight messages: kafkawire, kio and kafka-python."""

from __future__ import annotations

from ..measure import Figure, interleave
from .bodies import Body, bodies
from .peers import CONTENDERS, Codec

DECODE = "decode"
ENCODE = "encode"


def bind(body: Body, contenders: list[str]) -> dict[str, Codec]:
    """Bind the contenders to a body, and check that each encodes the bytes that it decoded."""
    data = body.data
    codecs = {name: CONTENDERS[name](body.name, body.version, data) for name in contenders}
    for name, codec in codecs.items():
        if codec.encode() != data:
            raise AssertionError(f"{name} does not write {body.name} v{body.version} as it was")
    return codecs


def run(rounds: int, contenders: list[str] | None = None) -> list[Figure]:
    """Measure; microseconds a message."""
    figures: list[Figure] = []
    for body in bodies():
        case = f"{body.name} v{body.version}"
        codecs = bind(body, contenders or list(CONTENDERS))
        decoders = {name: codec.decode for name, codec in codecs.items()}
        encoders = {name: codec.encode for name, codec in codecs.items()}
        figures += interleave(DECODE, case, decoders, rounds)
        figures += interleave(ENCODE, case, encoders, rounds)
    return figures
