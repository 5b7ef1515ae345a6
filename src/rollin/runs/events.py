"""Files of events for TensorBoard: scalars over steps, as records of small protobuf messages.

A record is its length, the data, and a masked CRC-32C of each; a message is made of the few fields
of TensorBoard's `Event` that scalars need. Written here, they cost no import of another library.
"""

import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

VERSION = b"brain.Event:2"  # the first event of a file
LARGEST = float.fromhex("0x1.fffffep127")  # of float32, the type of scalars


class EventsFile:
    """A new file of events in a directory, whose name tells when, where and at which step it began.

    OSError passes through.
    """

    def __init__(self, directory: Path, step: int) -> None:
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{step}"
        self._file = (directory / name).open("wb")
        self._write(_bytes(3, VERSION))

    def write_scalars(self, step: int, scalars: Mapping[str, float]) -> None:
        """The values of some quantities at a step."""
        values = b"".join(
            _bytes(1, _bytes(1, name.encode()) + _float(2, value))
            for name, value in scalars.items()
        )
        self._write(_number(2, step) + _bytes(5, values))

    def restart(self, step: int) -> None:
        """Have TensorBoard forget what an earlier file told of this step and later ones."""
        self._write(_number(2, step) + _bytes(7, _number(1, 1)))

    def flush(self) -> None:
        """Let others see what was written."""
        self._file.flush()

    def close(self) -> None:
        """Write what is left."""
        self._file.close()

    def _write(self, fields: bytes) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + fields  # field 1: when
        length = struct.pack("<Q", len(event))
        self._file.write(length + _checksum(length) + event + _checksum(event))


# ------------------------------------------------------------------ fields of messages


def _varint(value: int) -> bytes:
    """A natural number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", min(max(value, -LARGEST), LARGEST))


# ------------------------------------------------------------------ checksums


def _remainders() -> list[int]:
    """CRC-32C of every byte: remainders by the polynomial 0x1EDC6F41, its bits in reverse."""
    table = []
    for remainder in range(256):
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
        table.append(remainder)
    return table


_TABLE = _remainders()


def _checksum(data: bytes) -> bytes:
    """CRC-32C, rotated and shifted, so that it may be part of data that has one itself."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
