"""The output of a command: passed through as it is, and its end kept.

A terminal is handed on as it is, so that programs see one; of that, nothing is kept. A file is
handed on as well, and its end is read from the file afterwards. Of a pipe or anything else, what
comes is copied byte by byte as it comes.
"""

from __future__ import annotations

import os
import stat
import threading
from typing import Final

TAIL_BYTES_MAX: Final = 16 << 10  # of the end of the output, both streams together
CHUNK_BYTES: Final = 64 << 10
# Processes that the command left behind may hold its output open: we wait so long for them.
LINGER_S: Final = 1.0


class Output:
    """Where the child's two streams go. `stdout` and `stderr` are for Popen; None is inherited."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._turn = threading.Lock()
        self._pumps: list[threading.Thread] = []
        self._copied: list[tuple[int, int, int]] = []  # read end, write end, and where it goes
        self._files: list[tuple[int, int]] = []  # a descriptor, and where it stood
        self.stdout = self._way(1)
        self.stderr = self.stdout if self.stdout is not None and _is_same() else self._way(2)

    def _way(self, fd: int) -> int | None:
        try:
            status = os.fstat(fd)
        except OSError:
            return None  # closed
        if os.isatty(fd):
            return None
        if stat.S_ISREG(status.st_mode):
            if not any(os.path.samestat(os.fstat(other), status) for other, _ in self._files):
                self._files.append((fd, status.st_size))
            return None
        read_end, write_end = os.pipe()
        self._copied.append((read_end, write_end, fd))
        return write_end

    def begin(self) -> None:
        """Copy from now on. Call it when the child has its ends."""
        for read_end, write_end, fd in self._copied:
            os.close(write_end)
            pump = threading.Thread(target=self._pump, args=(read_end, fd), daemon=True)
            pump.start()
            self._pumps.append(pump)

    def _pump(self, read_end: int, fd: int) -> None:
        try:
            while chunk := os.read(read_end, CHUNK_BYTES):
                self._keep(chunk)
                _write_all(fd, chunk)
        except OSError:
            pass  # who read our output has gone: the command notices when it writes again
        finally:
            os.close(read_end)

    def _keep(self, chunk: bytes) -> None:
        with self._turn:
            self._tail += chunk[-TAIL_BYTES_MAX:]
            del self._tail[:-TAIL_BYTES_MAX]

    def finish(self) -> bool:
        """Wait for what is still on its way. False if somebody holds the output open."""
        for pump in self._pumps:
            pump.join(LINGER_S)
        return not any(pump.is_alive() for pump in self._pumps)

    def tail(self) -> str:
        """The end of what it wrote, as text; empty if nothing is known of it."""
        with self._turn:
            parts = [bytes(self._tail)]
        parts += [_end_of_file(fd, began) for fd, began in self._files]
        return b"".join(parts)[-TAIL_BYTES_MAX:].decode(errors="replace")


def _is_same() -> bool:
    """True if both streams go to one place: then they stay in order."""
    try:
        return os.path.samestat(os.fstat(1), os.fstat(2))
    except OSError:
        return False


def _write_all(fd: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _end_of_file(fd: int, began: int) -> bytes:
    """What was added to a file, at most the end of it."""
    try:
        own = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        size = os.fstat(own).st_size
        start = max(began if size >= began else 0, size - TAIL_BYTES_MAX)
        return os.pread(own, TAIL_BYTES_MAX, start)
    except OSError:
        return b""
    finally:
        os.close(own)
