"""Start `python -m tocsin ...` from a process that has imported everything already.

Importing takes a broker most of a CPU-second and a command a good part of one, and the tests start
thousands of them. A prepared interpreter forks in milliseconds. What it forks is a process as any
other: own arguments, environment, directory, standard streams and exit code, and a child of the
tests, so that `subprocess` waits for it and kills it as usual. `TOCSIN_PREPARED=0` starts every
command in an interpreter of its own, and so does a system other than Linux.

Tests of what an interpreter itself does at its start (flags, imports, its CPU time) start it by
the script `tocsin`, or with flags before `-m`: those are never forked.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

COMMAND = [sys.executable, "-m", "tocsin"]
# Read by the interpreter when it starts: whoever sets one of these wants a start.
_OF_THE_INTERPRETER = ("PYTHON", "LD_", "MALLOC_", "TZ", "LC_", "LANG")
_SOURCES = Path(__file__).parent.parent / "src"
_PR_SET_CHILD_SUBREAPER = 36
_HEAD_BYTES = 8


class PreparedPopen(subprocess.Popen[Any]):
    """A Popen that forks `python -m tocsin` from the prepared interpreter where it can."""

    def _execute_child(self, args: Any, *rest: Any) -> None:
        # The order of these is Popen's own since Python 3.11.
        _, preexec, _, pass_fds, cwd, env, _, _, shell, *streams = rest[:15]
        is_plain = not (preexec or pass_fds or shell or rest[-2] or rest[-1] != -1)
        if not is_plain or list(args[:3]) != COMMAND or not _is_ordinary(env):
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        given = [fd if fd != -1 else own for own, fd in enumerate(streams[i] for i in (0, 3, 5))]
        words = [os.fspath(each) for each in args[3:]]
        self.pid = _server().start(words, dict(env or os.environ), os.fspath(cwd or "."), given)
        self._child_created = True
        self._close_pipe_fds(*streams)  # type: ignore[attr-defined]


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    chosen = {name: env[name] for name in env if str(name).startswith(_OF_THE_INTERPRETER)}
    if chosen.get("PYTHONPATH") == str(_SOURCES):  # where it is imported from anyway
        del chosen["PYTHONPATH"]
    return chosen


_AS_PREPARED = _at_start(os.environ)


def _is_ordinary(env: Mapping[str, str] | None) -> bool:
    """True if the environment asks for nothing that only a new interpreter can give."""
    return _at_start(os.environ if env is None else env) == _AS_PREPARED


class _Server:
    """The prepared interpreter, seen from the tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here, there = socket.socketpair()
        self._prctl = ctypes.CDLL(None).prctl
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(there.fileno())],
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
        )
        there.close()

    def start(self, words: list[str], env: dict[str, str], cwd: str, streams: list[int]) -> int:
        order = json.dumps([words, env, os.path.abspath(cwd)]).encode()
        with self._lock:
            # What is forked loses its parent at once, and only now that makes it our child: orphans
            # of other processes are not for us to wait for.
            self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._here, [len(order).to_bytes(_HEAD_BYTES, "big")], streams)
                self._here.sendall(order)
                return int.from_bytes(_exactly(self._here, _HEAD_BYTES), "big")
            finally:
                self._prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


_prepared: dict[int, _Server] = {}


def _server() -> _Server:
    """The one of this process: a fork of it needs its own."""
    if os.getpid() not in _prepared:
        _prepared[os.getpid()] = _Server()
    return _prepared[os.getpid()]


def use() -> None:
    """From now on every Popen, and so `subprocess.run`, is a prepared one."""
    if sys.platform == "linux" and os.environ.get("TOCSIN_PREPARED") != "0":
        subprocess.Popen = PreparedPopen  # type: ignore[misc]


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError("the prepared interpreter ended")
        data += more
    return data


# From here on: what runs in the prepared interpreter.


def _serve(connection: socket.socket) -> None:
    while True:
        head, streams, _, _ = socket.recv_fds(connection, _HEAD_BYTES, 3)
        if not head:
            return
        words, env, cwd = json.loads(_exactly(connection, int.from_bytes(head, "big")))
        pid = _fork(connection, words, env, cwd, streams)
        for stream in streams:
            os.close(stream)
        connection.sendall(pid.to_bytes(_HEAD_BYTES, "big"))


def _fork(
    connection: socket.socket, words: list[str], env: dict[str, str], cwd: str, streams: list[int]
) -> int:
    """The process id of a grandchild, which is the tests' child as soon as its parent has ended."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.close(writing)
            connection.close()
            _become(words, env, cwd, streams)
        os.write(writing, pid.to_bytes(_HEAD_BYTES, "big"))
        os._exit(0)
    os.close(writing)
    pid = int.from_bytes(os.read(reading, _HEAD_BYTES), "big")
    os.close(reading)
    os.waitpid(between, 0)
    return pid


def _become(words: list[str], env: dict[str, str], cwd: str, streams: list[int]) -> NoReturn:
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for stream in streams:
            if stream > 2:
                os.close(stream)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        code = _run(words)
    finally:
        os._exit(code)


def _run(words: list[str]) -> int:
    """As `python -m tocsin` would, to the last flush."""
    import atexit
    import traceback

    from tocsin.cli.main import main

    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        errors = "backslashreplace" if name == "stderr" else None
        is_line = name == "stderr" or (mode == "w" and os.isatty(number))
        opened = os.fdopen(
            number, mode, buffering=1 if is_line else -1, errors=errors, closefd=False
        )
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)
    sys.argv = ["tocsin", *words]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or 120  # as Python says of a flush that failed
    return code


def _prepare() -> None:
    """Import what commands import when they are run, but nothing that starts a thread."""
    import importlib
    import pkgutil

    import tocsin.cli.commands as commands

    importlib.import_module("tocsin.drivers.serve")
    for found in pkgutil.iter_modules(commands.__path__):
        importlib.import_module(f"{commands.__name__}.{found.name}")
    with contextlib.suppress(ImportError):  # without the extra for Spark
        importlib.import_module("tocsin.pipeline.job")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _prepare()
    _serve(socket.socket(fileno=int(sys.argv[1])))
