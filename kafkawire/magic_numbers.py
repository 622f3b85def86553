"""The magic numbers by which formats of files, and of compressed data, are recognised.

No other module has a magic number of a format. `head`: the first 4 bytes of a file or frame,
or more.
"""

from struct import Struct
from typing import Final, NamedTuple

GZIP: Final = b"\x1f\x8b"
BGZF: Final = b"\x1f\x8b\x08\x04"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
LZ4: Final = b"\x04\x22\x4d\x18"
SNAPPY_JAVA: Final = b"\x82SNAPPY\x00"

SKIPPABLE: Final = 0x184D2A50
"""Skippable frames of zstd and lz4 begin with this number; its last 4 bits are arbitrary."""

ZSTD_SEEK_TABLE: Final = 0x184D2A5E
ZSTD_SEEKABLE: Final = 0x8F92EAB1
"""The skippable frame at the end of a seekable zstd file, and the number that ends it."""

PCAP_MICROSECONDS: Final = 0xA1B2C3D4
PCAP_NANOSECONDS: Final = 0xA1B23C4D
PCAP_KUZNETZOV: Final = 0xA1B2CD34
PCAP_IXIA_HARDWARE: Final = 0x1C0001AB
PCAP_IXIA_SOFTWARE: Final = 0x1C0001AC

PCAP: Final = frozenset(
    number.to_bytes(4, order)
    for number in (
        PCAP_MICROSECONDS,
        PCAP_NANOSECONDS,
        PCAP_KUZNETZOV,
        PCAP_IXIA_HARDWARE,
        PCAP_IXIA_SOFTWARE,
    )
    for order in ("big", "little")
)
PCAPNG: Final = b"\x0a\x0d\x0d\x0a"


def is_gzip(head: bytes) -> bool:
    """Whether these are the first bytes of a gzip member."""
    return head[:2] == GZIP


def is_skippable(head: bytes) -> bool:
    """Whether these are the first bytes of a skippable frame of zstd or lz4."""
    return int.from_bytes(head[:4], "little") & ~0xF == SKIPPABLE


def is_zstd(head: bytes) -> bool:
    """Whether these are the first bytes of a zstd file: of a frame, or of a skippable frame."""
    return head[:4] == ZSTD or is_skippable(head)


def is_pcap(head: bytes) -> bool:
    """Whether these are the first bytes of a pcap file."""
    return head[:4] in PCAP


def is_pcapng(head: bytes) -> bool:
    """Whether these are the first bytes of a pcapng file."""
    return head[:4] == PCAPNG


class OtherFormat(NamedTuple):
    """A format that is not read. remedy: what makes a file of a format that is."""

    magic: bytes
    description: str
    remedy: str
    offset: int = 0


_DECOMPRESS: Final = "decompress it first: "
_UNPACK: Final = "unpack it first: "
_CONVERT: Final = "convert it first: editcap OLD NEW.pcapng"

OTHER_FORMATS: Final = (
    OtherFormat(b"\xfd7zXZ\0", "compressed with xz", _DECOMPRESS + "xz -d"),
    OtherFormat(b"BZh", "compressed with bzip2", _DECOMPRESS + "bzip2 -d"),
    OtherFormat(LZ4, "compressed with lz4", _DECOMPRESS + "lz4 -d"),
    OtherFormat(b"\x1f\x9d", "compressed with compress", _DECOMPRESS + "gzip -d"),
    OtherFormat(b"PK\x03\x04", "a zip archive", _UNPACK + "unzip"),
    OtherFormat(b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK + "7z x"),
    OtherFormat(b"ustar", "a tar archive", _UNPACK + "tar -xf", offset=257),
    OtherFormat(b"snoop\0\0\0", "a capture in the format of snoop", _CONVERT),
    OtherFormat(b"GMBU", "a capture in the format of Network Monitor", _CONVERT),
    OtherFormat(b"RTSS", "a capture in the format of Network Monitor 1", _CONVERT),
    OtherFormat(b"TRSNIFF data", "a capture in the format of Sniffer", _CONVERT),
    OtherFormat(b"XCP\0", "a capture in the format of NetXRay", _CONVERT),
    OtherFormat(b"iptrace ", "a capture in the format of iptrace", _CONVERT),
    OtherFormat(b"ObserverPktBuffer", "a capture in the format of Observer", _CONVERT),
    OtherFormat(b"+---------+---------------+----------+", "a capture as K12 text", _CONVERT),
    OtherFormat(b"\x05VNF", "a capture in the format of Visual Networks", _CONVERT),
    OtherFormat(b"TR\0d\0", "a capture in the format of nettl", _CONVERT),
    OtherFormat(b"Trace Display", "a capture in the format of LANalyzer", _CONVERT, offset=6),
    OtherFormat(b"\x7fver", "a capture in the format of OmniPeek", _CONVERT),
)
"""What is passed around beside pcap and pcapng, and is recognised only to say what to do."""


def other_format(head: bytes) -> str:
    """Return what a file of a format that is not read is, and what to do; "" if unknown."""
    for each in OTHER_FORMATS:
        if head.startswith(each.magic, each.offset):
            return f"{each.description}; {each.remedy}"
    return LOG_SEGMENT if is_log_segment(head) else ""


LOG_SEGMENT: Final = "a segment of a broker's log; read it with kafkawire log"

BATCH_HEADER: Final = Struct(">qiibIhi30xi")
"""What a record batch of magic 2 has in front of its records."""


def is_log_segment(head: bytes) -> bool:
    """Whether these are the first bytes of a segment: the header of a record batch of magic 2.

    It has no magic number, but fields that few other files have in these places.
    """
    if len(head) < BATCH_HEADER.size:
        return False
    base_offset, length, leader_epoch, magic, _, attributes, last_offset_delta, records = (
        BATCH_HEADER.unpack_from(head)
    )
    return bool(
        magic == 2
        and base_offset >= 0
        and length >= BATCH_HEADER.size - 12  # counted from behind itself
        and leader_epoch >= -1
        and 0 <= attributes < 1 << 7
        and last_offset_delta >= 0
        and 0 <= records <= last_offset_delta + 1
    )
