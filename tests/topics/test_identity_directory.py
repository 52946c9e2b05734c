"""The files of an identity: made once, read again, and refused if others may read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.errors import BadCredential
from tocsin.store.identity_directory import (
    CERTIFICATE,
    SEALING_KEY,
    SIGNING_KEY,
    keep_identity,
    open_identity,
    open_or_make_identity,
)


def test_an_identity_is_made_on_first_use_and_the_same_from_then_on(tmp_path: Path) -> None:
    where = str(tmp_path / "a" / "alice")

    made = open_or_make_identity(where, name="alice", institution="CGL")
    again = open_or_make_identity(where, name="somebody else")

    assert again.entity == made.entity == open_identity(where).entity
    assert (tmp_path / "a" / "alice").stat().st_mode & 0o777 == 0o700
    assert {
        each.name: each.stat().st_mode & 0o777 for each in Path(where).iterdir()
    } == dict.fromkeys((SIGNING_KEY, CERTIFICATE, SEALING_KEY), 0o600)


@pytest.mark.parametrize("name", [SIGNING_KEY, CERTIFICATE, SEALING_KEY])
def test_files_that_others_may_read_are_refused(tmp_path: Path, name: str) -> None:
    where = tmp_path / "alice"
    open_or_make_identity(str(where), name="alice")
    (where / name).chmod(0o640)

    with pytest.raises(BadCredential, match=f"{name} can be read or changed by others"):
        open_identity(str(where))


def test_a_directory_that_others_may_change_is_refused(tmp_path: Path) -> None:
    where = tmp_path / "alice"
    open_or_make_identity(str(where), name="alice")
    where.chmod(0o770)

    with pytest.raises(BadCredential, match="can be used by others"):
        open_or_make_identity(str(where), name="alice")


@pytest.mark.parametrize("name", [SIGNING_KEY, CERTIFICATE, SEALING_KEY])
def test_a_file_that_is_missing_is_named_and_no_other_identity_is_made(
    tmp_path: Path, name: str
) -> None:
    where = tmp_path / "alice"
    open_or_make_identity(str(where), name="alice")
    (where / name).unlink()

    with pytest.raises(BadCredential, match=name):
        open_or_make_identity(str(where), name="alice")
    assert not (where / name).exists()


def test_an_identity_is_never_written_over(tmp_path: Path) -> None:
    where = str(tmp_path / "alice")
    made = open_or_make_identity(where, name="alice")

    with pytest.raises(BadCredential, match="already"):
        keep_identity(where, made)


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")

    for where in (str(file), str(tmp_path / "nothing")):
        with pytest.raises(BadCredential, match="identity"):
            open_identity(where)
