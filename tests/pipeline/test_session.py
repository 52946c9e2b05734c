"""The Spark session: a Java is found, or it is said what to install; settings are as promised."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tocsin.errors.spark import JavaMissing
from tocsin.pipeline import java
from tocsin.pipeline.java import Java, class_archive_flags, find_java
from tocsin.pipeline.session import DRIVER_MIB_MAX, DRIVER_MIB_MIN, driver_mib


def pretend(home: Path, words: str) -> None:
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{words}' >&2\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)


def test_without_a_java_that_will_do_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "PLACES", (f"{tmp_path}/jvm/*",))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(JavaMissing, match=r"JAVA_HOME is .*none.*openjdk-17"):
        find_java()

    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(JavaMissing, match="there is none"):
        find_java()

    pretend(tmp_path / "jvm" / "old", 'openjdk version "1.8.0_412"')
    with pytest.raises(JavaMissing, match="is Java 8"):
        find_java()

    pretend(tmp_path / "jvm" / "new", 'openjdk version "21.0.4" 2026-07-16')
    assert find_java() == Java(tmp_path / "jvm" / "new", "21.0.4", 21)


def test_the_archive_of_classes_is_taken_when_its_writer_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Java(tmp_path, "17.0.1", 17)

    first = class_archive_flags(found, "fast", tmp_path)
    written = Path(first.split()[0].removeprefix("-XX:ArchiveClassesAtExit="))
    written.write_bytes(b"classes")

    assert "ArchiveClassesAtExit" in class_archive_flags(found, "fast", tmp_path)  # still warm
    os.utime(written, (time.time() - 60,) * 2)
    assert "-XX:SharedArchiveFile=" in class_archive_flags(found, "fast", tmp_path)
    assert "ArchiveClassesAtExit" in class_archive_flags(found, "work", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "with a blank"))
    assert class_archive_flags(found, "fast", tmp_path) == ""


def test_a_session_speaks_utc_and_leaves_the_machine_room(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.parquet.compression.codec") == "zstd"
    assert spark.sparkContext.uiWebUrl is None
    assert DRIVER_MIB_MIN <= driver_mib() <= DRIVER_MIB_MAX
    assert driver_mib() <= max(DRIVER_MIB_MIN, psutil.virtual_memory().total // 2**21)
