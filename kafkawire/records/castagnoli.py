"""CRC-32C by carry-less multiplication: what `castagnoli.c` does, where no compiler made it.

Law: `available` says whether the other function may be called. Here it may not; there it may on
processors that multiply in 512-bit registers.
"""


def available() -> bool:
    """Say whether `crc32c` can be used."""
    return False


def crc32c(data: bytes, start: int, end: int, after: int) -> int:
    """Compute the CRC-32C of `data[start:end]` behind bytes whose own is `after`, 0 for none."""
    raise NotImplementedError("castagnoli.c was not compiled")
