"""Java: which one Spark is to run on, and the archive of classes that makes it start fast."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tocsin.errors.spark import JavaMissing

MAJOR_MIN: Final = 17  # Spark 4 needs it
ANSWER_S: Final = 20  # `java -version` takes 0.1 s; on a machine that swaps, some more
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
    "`conda install openjdk`; or set JAVA_HOME to the one there is."
)
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')


@dataclass(frozen=True, slots=True)
class Java:
    """One installation: its directory, and what it says its version is."""

    home: Path
    version: str
    major: int


def find_java() -> Java:
    """The Java to use: that of JAVA_HOME, else of the path, else of the usual places.

    Raises JavaMissing, with what to install.
    """
    seen: list[str] = []
    named = os.environ.get("JAVA_HOME")
    for home in _candidates(named):
        java = _asked(home)
        if java is None:
            if named:
                raise JavaMissing(f"JAVA_HOME is {named}, and there is no Java", remedy=REMEDY)
            continue
        if java.major >= MAJOR_MIN:
            return java
        seen.append(f"{home} is Java {java.major}")
    if seen:
        raise JavaMissing(f"Spark needs Java {MAJOR_MIN}, and {'; '.join(seen)}", remedy=REMEDY)
    raise JavaMissing("Spark needs Java, and there is none", remedy=REMEDY)


def class_archive_flags(java: Java, purpose: str, jars: Path) -> str:
    """Flags with which the JVM loads its classes from one file, or writes that file as it ends.

    It more than halves the start (measured: 8.1 s to 3.8 s until the first result). Java refuses
    an archive that does not fit and starts as it always does.
    """
    directory = _cache_directory()
    if directory is None:
        return ""
    named = f"{java.version}|{java.home}|{purpose}|{jars}|{jars.stat().st_mtime_ns}"
    archive = directory / f"spark-{hashlib.sha256(named.encode()).hexdigest()[:16]}.jsa"
    quiet = "-Xlog:cds=off -Xlog:class+path=off -Xlog:cds+dynamic=off"
    if archive.exists() or _adopt(archive):
        return f"-XX:SharedArchiveFile={archive} {quiet}"
    return f"-XX:ArchiveClassesAtExit={archive}.{os.getpid()} {quiet}"


def _adopt(archive: Path) -> bool:
    """Take what an earlier session left as it ended, if one did; True if there is now one.

    Each session writes under its own name, because two that end at once would spoil one file.
    """
    for left in archive.parent.glob(f"{archive.name}.*"):
        # Another session may do the same now; one of the two has it, and the other none.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > SETTLED_S:
                left.replace(archive)
    return archive.exists()


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


def _candidates(named: str | None) -> Iterator[Path]:
    if named:
        yield Path(named)
        return
    found = shutil.which("java")
    if found:
        yield Path(found).resolve().parent.parent
    for pattern in PLACES:
        yield from sorted(Path("/").glob(pattern[1:]), reverse=True)


def _asked(home: Path) -> Java | None:
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
    return Java(home, found[1] + found[2], int(found[1])) if found else None
