"""Follows a capture file by its name, as `tail -F` does: it grows, is renamed, or is truncated.

What is read is one capture. The rest of a renamed file comes before the file that takes its
name. The pcap header of a next file equals the first one, and is left out, as is a packet that was
incomplete when its file was truncated. A pcapng file may have several sections: all of it is read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from kafkawire.capture.files.packet_headers import Shape
from kafkawire.capture.files.packet_offsets import packets
from kafkawire.capture.files.pcap import FILE_HEADER, read_header
from kafkawire.display import printable
from kafkawire.magic_numbers import PCAPNG, is_pcap, is_pcapng

from ..inputs import InputError

CHUNK: Final = 1 << 16


class FollowedFile:
    """The bytes of a capture file, and of those that take its name.

    Close it at the end. Raises OSError if there is no such file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self._header: bytes | None = None
        self._shape: Shape | None = None
        self._begun = False
        self._held = b""
        self._ready = b""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def fileno(self) -> int:
        """Return the descriptor of the current file."""
        return self._file.fileno()

    def read1(self, size: int) -> bytes:
        """Return bytes, at most so many; none if there are no more yet.

        Raises InputError for a next file that does not continue the capture.
        """
        if not self._ready and not self._read() and self._is_replaced() and not self._read():
            self._open_next()  # the second time, nothing was written before the file was renamed
            self._read()
        data, self._ready = self._ready[:size], self._ready[size:]
        return data

    def _read(self) -> bool:
        """Read more of the current file; False at its end."""
        data = self._file.read1(CHUNK)
        self._held += data
        if not self._begun:
            self._begin()
        if self._begun:
            end = self._whole()
            self._ready, self._held = self._ready + self._held[:end], self._held[end:]
        return bool(data)

    def _begin(self) -> None:
        """Handle the header of a file, when it is complete."""
        held = self._held
        if len(held) < FILE_HEADER:
            return
        size = read_header(held).size if is_pcap(held) else 0
        if len(held) < size:
            return
        header = held[: size or len(PCAPNG)]
        if self._header is None:
            self._header = header
            self._ready = held[:size]
            self._shape = read_header(held).shape if size else None
        elif header != self._header or not (size or is_pcapng(header)):
            name = printable(str(self._path))
            raise InputError(f"{name}: was replaced by a file that does not continue this capture")
        self._held = held[size:]
        self._begun = True

    def _whole(self) -> int:
        """Return where the complete packets end in the bytes that are held."""
        shape, held = self._shape, self._held
        if shape is None:
            return len(held)
        _, end = packets(held, 0, shape.size, shape.order == ">", shape.longest, len(held))
        if len(held) - end <= shape.size + shape.longest:
            return end
        self._shape = None  # damaged: the reader of captures finds the next packet
        return len(held)

    def _is_replaced(self) -> bool:
        """Whether another file has the name, or this one is shorter than what was read of it."""
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False  # renamed, and the next one is not there yet
        if not os.path.samestat(there, os.fstat(self.fileno())):
            return True
        return there.st_size < self._file.tell()

    def _open_next(self) -> None:
        try:
            following = self._path.open("rb")
        except FileNotFoundError:
            return
        self._file.close()
        self._file = following
        self._begun = False
        self._held = b""
