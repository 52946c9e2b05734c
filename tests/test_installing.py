"""What `make` installs and what CI runs it on."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


def wanted(extra: str | None = None) -> Iterator[Requirement]:
    """Every dependency of the package, or of one of its extras and those it names."""
    found = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    for each in map(Requirement, found):
        if each.name != "tocsin":
            yield each
            continue
        for other in sorted(each.extras):
            yield from wanted(other)


def locked() -> dict[str, str]:
    """The versions that are installed on this machine, by name."""
    found: dict[str, str] = {}
    lines = (ROOT / "requirements" / "dev.txt").read_text().splitlines()
    for line in lines:
        if re.match(r"[A-Za-z0-9]", line):
            each = Requirement(line.removesuffix("\\"))
            if each.marker is None or each.marker.evaluate():
                [version] = each.specifier
                found[canonicalize_name(each.name)] = version.version
    return found


@pytest.mark.parametrize("each", [*wanted(), *wanted("dev")], ids=str)
def test_every_dependency_is_locked_at_a_version_it_may_have(each: Requirement) -> None:
    if each.marker is not None and not each.marker.evaluate():
        pytest.skip(f"not on this machine: {each.marker}")

    version = locked().get(canonicalize_name(each.name))

    assert version, "not locked; run: make lock"
    assert each.specifier.contains(version), f"locked at {version}; run: make lock"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_everything_locked_has_a_hash_and_no_registry_is_named(lock: Path) -> None:
    text = lock.read_text()
    entries = re.findall(r"^[A-Za-z0-9].*(?:\n .*)*", text, re.MULTILINE)

    assert entries
    assert not [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry]
    assert "://" not in text
    assert "index" not in text


def pretend_python(place: Path, version: str, *, makes_venv: bool) -> None:
    command = place / f"python{version.rpartition('.')[0]}"
    command.write_text(
        f'#!/bin/sh\ncase "$1" in -c) echo {version} ;; *) exit {0 if makes_venv else 1} ;; esac\n'
    )
    command.chmod(0o755)


def test_ci_runs_on_the_oldest_and_the_newest_python_that_can_make_an_environment(
    tmp_path: Path,
) -> None:
    pretend_python(tmp_path, "3.11.0", makes_venv=True)
    pretend_python(tmp_path, "3.12.9", makes_venv=True)
    pretend_python(tmp_path, "3.13.9", makes_venv=False)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.defpath}"}

    said = subprocess.run(
        [str(ROOT / ".ci" / "run"), "--list"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert f"all tests on Python 3.11.0 ({tmp_path}/python3.11)" in said.stdout
    assert f"passing over {tmp_path}/python3.13 (3.13.9)" in said.stderr
    assert "core tests on Python 3.13.9" not in said.stdout


@pytest.mark.parametrize("builder", [WheelBuilder, SdistBuilder])
def test_schemas_and_other_files_of_the_package_are_built_into_it(
    builder: type[WheelBuilder | SdistBuilder],
) -> None:
    built = {Path(file.path) for file in builder(str(ROOT)).recurse_included_files()}
    data = {
        path
        for path in (ROOT / "src" / "tocsin").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }

    assert {path.suffix for path in data} >= {".wsdl", ".xsd", ".ttl"}
    assert data - built == set()
