"""The state of the sticky assignors in a subscription's user data.

The version follows from the length.

    assignor             user data
    sticky               topics with the partitions held | version 1: int32 generation (KIP-341)
    cooperative-sticky   int32 generation (KIP-429: what is held stands in the subscription itself)

librdkafka and franz-go write the first layout for both assignors, so under the second name anything
but four bytes is read as the first. franz-go's empty version 0 is four zero bytes, which equals
generation 0.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ..errors import FieldNotInVersion
from ..primitives import FieldRow, Reader, Structure, Writer
from .client_payload import ClientPayload

DEFAULT_GENERATION: Final = -1
"""The generation of a member without an assignment."""


class StickyTopicPartitions(Structure):
    """A topic and the member's partitions of it."""

    __match_args__: ClassVar[tuple[str, ...]] = ("topic", "partitions")
    __fields__: ClassVar[tuple[FieldRow, ...]] = (
        FieldRow("topic", "topic", "string", 0, 1, -1),
        FieldRow("partitions", "partitions", "[]int32", 0, 1, -1),
    )

    def __init__(self, *, topic: str = "", partitions: list[int] | None = None) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class StickyUserData(ClientPayload):
    """A member's previous partitions, and their generation of the group."""

    LAST = 1
    __match_args__: ClassVar[tuple[str, ...]] = ("previous_assignment", "generation")
    __fields__: ClassVar[tuple[FieldRow, ...]] = (
        FieldRow("previous_assignment", "previousAssignment", "[]StickyTopicPartitions", 0, 1, -1),
        FieldRow("generation", "generation", "int32", 1, 1, -1),
    )

    def __init__(
        self,
        *,
        previous_assignment: list[StickyTopicPartitions] | None = None,
        generation: int = DEFAULT_GENERATION,
    ) -> None:
        self.previous_assignment = [] if previous_assignment is None else previous_assignment
        self.generation = generation
        self.deviations = None

    @classmethod
    def _read(cls, reader: Reader, version: int) -> StickyUserData:
        user_data = cls(
            previous_assignment=[
                StickyTopicPartitions(
                    topic=reader.read_string(False),
                    partitions=reader.read_int32_items(reader.read_array_length(False)),
                )
                for _ in range(reader.read_array_length(False))
            ]
        )
        if version >= 1:
            user_data.generation = reader.read_int32()
        return user_data

    def _write(self, writer: Writer, version: int) -> None:
        writer.write_length(len(self.previous_assignment), False)
        for each in self.previous_assignment:
            writer.write_string(each.topic, False)
            writer.write_int32_array(each.partitions, False)
        if version >= 1:
            writer.write_int32(self.generation)
        elif self.generation != DEFAULT_GENERATION:
            raise FieldNotInVersion(
                "is set, and version 0 has no such field", "StickyUserData.generation"
            )


class CooperativeStickyUserData(ClientPayload):
    """The generation in which a member got its partitions."""

    __match_args__: ClassVar[tuple[str, ...]] = ("generation",)
    __fields__: ClassVar[tuple[FieldRow, ...]] = (
        FieldRow("generation", "generation", "int32", 0, 0, -1),
    )

    def __init__(self, *, generation: int = DEFAULT_GENERATION) -> None:
        self.generation = generation
        self.deviations = None

    @classmethod
    def _read(cls, reader: Reader, _version: int) -> CooperativeStickyUserData:
        return cls(generation=reader.read_int32())

    def _write(self, writer: Writer, _version: int) -> None:
        writer.write_int32(self.generation)
