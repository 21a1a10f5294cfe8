"""A clip's proof that it is whole: a checksum in an mp4 box at its end, which every reader passes over."""

import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

BOX = struct.Struct(">I4s8sI")
"""Size, type ("free": to be ignored), our mark, CRC-32 of all before the box."""

MARK = b"whole-v1"


def close(path: Path) -> None:
    """Seals a file and flushes it to disk.

    Raises:
        OSError: The file cannot be written.
    """
    with path.open("r+b") as file:
        checksum = _checksum(file, os.fstat(file.fileno()).st_size)
        file.seek(0, os.SEEK_END)
        file.write(BOX.pack(BOX.size, b"free", MARK, checksum))
        file.flush()
        os.fsync(file.fileno())


def intact(file: BinaryIO) -> bool:
    """Whether an open file is sealed and as it was when it was sealed."""
    length = os.fstat(file.fileno()).st_size - BOX.size
    if length < 0:
        return False
    file.seek(length)
    seal = file.read(BOX.size)
    file.seek(0)
    return seal == BOX.pack(BOX.size, b"free", MARK, _checksum(file, length))


def _checksum(file: BinaryIO, length: int) -> int:
    value = 0
    while length > 0 and (block := file.read(min(length, 1 << 20))):
        value, length = zlib.crc32(block, value), length - len(block)
    return value
