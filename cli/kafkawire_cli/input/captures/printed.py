"""Captures that are printed packets, because the user says so (`--input-format text`)."""

from __future__ import annotations

from kafkawire.capture.files.printed import PrintedDecoder
from kafkawire.capture.files.source import Capture, read_capture
from kafkawire.capture.multifile import Source, Traffic
from kafkawire.printed.packets import PrintedPackets


class PrintedTraffic(Traffic):
    """Reads printed packets that the first bytes of a file do not show."""

    def open(self, source: Source) -> Capture:
        """Open a file."""
        return read_capture(source, self.watch, PrintedDecoder(PrintedPackets()))
