"""Decodes the headers of packets, one after the other, down to TCP or to the reason why not.

Packets are decoded in rounds of a header each. In a round, those at the same type of header are
decoded together: work is bounded by MAX_LAYERS times the number of types, however packets nest.
"""

from __future__ import annotations

import numpy as np

from ..files.columns import kinds, take_rows
from .handlers import HANDLERS
from .headers import HEADERS
from .kinds import ENDS, MAX_LAYERS, Kind
from .layers import Decoding, Layer, Step, complete_headers, ended


def descend(layers: list[Layer], decoding: Decoding) -> list[Layer]:
    """Decode packets down to their final kinds."""
    ends: list[Layer] = []
    for _ in range(MAX_LAYERS):
        of_kind: dict[Kind, list[Layer]] = {}
        for layer in layers:
            if layer.kind <= ENDS:
                ends.append(layer)
            else:
                of_kind.setdefault(layer.kind, []).append(layer)
        if not of_kind:
            return ends
        layers = [
            decoded
            for several in of_kind.values()
            for decoded in _decode(several[0] if len(several) == 1 else joined(several), decoding)
        ]
    return ends + [layer if layer.kind <= ENDS else ended(layer, Kind.NESTED) for layer in layers]


def joined(layers: list[Layer]) -> Layer:
    """Concatenate layers of one kind."""
    columns = zip(*((each.rows, each.at, each.end, each.stop) for each in layers), strict=True)
    rows, starts, end, stop = map(np.concatenate, columns)
    return Layer(layers[0].kind, rows, starts, end, stop)


def _decode(layer: Layer, decoding: Decoding) -> list[Layer]:
    """Decode one header of the packets of a layer; return them grouped by the next header."""
    whole, cut = complete_headers(layer)
    if not len(whole.rows):
        return cut
    headers = take_rows(decoding.data, whole.at, HEADERS[layer.kind])
    return _grouped(whole, HANDLERS[layer.kind](headers, whole, decoding)) + cut


def _grouped(layer: Layer, step: Step) -> list[Layer]:
    numbers = None if step.numbers is None else step.numbers.astype(np.int64)
    next_kinds = kinds(step.kinds)
    parts = []
    for number in next_kinds:
        kind = Kind(number)
        part = Layer(kind, layer.rows, step.at, layer.end, step.stop, layer.kind)
        if kind is Kind.SKIPPED:
            part.numbers = numbers
        parts.append(part if len(next_kinds) == 1 else part[step.kinds == number])
    return parts
