"""Payloads that clients exchange through a broker, in layouts without a Kafka schema.

Such a class has the methods of a generated message: `decode`, `decode_from`, `encode`,
`encode_to` and `__fields__`. The layouts are in `connect` and `sticky`; this module is their base.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

from ..errors import DecodeError, EncodeError, InvalidText, InvalidValue, OutOfRange, Truncated
from ..primitives import DEFAULT_LIMITS, Limits, Message, Reader, Writer
from ..primitives.failure import unsupported


class ClientPayload(Message):
    """A payload with a layout of our own; FIRST and LAST are its versions, both included."""

    FIRST: ClassVar[int] = 0
    LAST: ClassVar[int] = 0

    @classmethod
    def decode(
        cls, data: bytes, version: int, *, lenient: bool = False, limits: Limits = DEFAULT_LIMITS
    ) -> Self:
        """Read a payload that fills the data.

        DecodeError names it and the byte where reading stopped.
        """
        reader = Reader(data, lenient=lenient, limits=limits)
        name = cls.__name__
        try:
            payload = cls.decode_from(reader, version)
            payload.deviations = reader.finish()
        except IndexError:
            raise Truncated("the data ends inside the message", name, len(data)) from None
        except UnicodeDecodeError:
            raise InvalidText("a string is not UTF-8", name, reader.pos) from None
        except DecodeError as error:
            offset = min(reader.pos, len(data))
            raise type(error)(error.reason, error.path or name, offset) from None
        return payload

    @classmethod
    def decode_from(cls, reader: Reader, version: int) -> Self:
        """Read a payload at the reader's position; bytes may follow."""
        cls._check(version)
        payload = cls._read(reader, version)
        payload.deviations = None
        return payload

    def encode(self, version: int, *, lenient: bool = False) -> bytes:
        writer = Writer(lenient=lenient)
        name = type(self).__name__
        self._check(version)
        try:
            self._write(writer, version)
        except EncodeError as error:
            raise type(error)(error.reason, error.path or name) from None
        except (OverflowError, ValueError) as error:
            raise OutOfRange(str(error), name) from None
        except (TypeError, AttributeError) as error:
            raise InvalidValue(str(error), name) from None
        trailing = self.deviations.trailing if lenient and self.deviations is not None else b""
        return writer.getvalue() + trailing

    def encode_to(self, writer: Writer, version: int) -> None:
        """Append the payload to the writer; errors are the writer's own."""
        self._check(version)
        self._write(writer, version)

    @classmethod
    def _check(cls, version: int) -> None:
        if not cls.FIRST <= version <= cls.LAST:
            raise unsupported(cls.__name__, cls.FIRST, cls.LAST, version)

    @classmethod
    @abstractmethod
    def _read(cls, reader: Reader, version: int) -> Self: ...

    @abstractmethod
    def _write(self, writer: Writer, version: int) -> None: ...
