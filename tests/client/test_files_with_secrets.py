"""One rule for every file with a secret, of clients and of the broker: nobody but its owner may use
it, but for the group of a file of root."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from served import ROOT
from tocsin.credentials import files
from tocsin.credentials.token_file import TokenFile
from tocsin.drivers.access.access_control import read_secret
from tocsin.drivers.tls import private_files
from tocsin.errors import BadCredential

TEXT = "tocsin_ab_secret"
READERS: dict[str, Callable[[Path], object]] = {
    "a client's token": lambda path: TokenFile(str(path)).read(),
    "a client's key": lambda path: files.check_private(str(path), "the private key"),
    "the administrator's token": read_secret,
    "the broker's key": lambda path: private_files.check_private(path, "http.tls_key"),
    "the authority's key": lambda path: private_files.read_private(path, "the key"),
}
NOBODY = 65534
PRIVATE = (0o600, 0o400, 0o700)
OF_ROOT = (0o640, 0o440)
NEVER = (0o604, 0o660, 0o620, 0o610, 0o601, 0o644, 0o666)


def refusal(reader: Callable[[Path], object], path: Path) -> str:
    """What is wrong with the file, and what to do; empty if it is read."""
    try:
        reader(path)
    except BadCredential as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("reader", READERS)
def test_ones_own_file_is_for_oneself(reader: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(TEXT)

    for mode in PRIVATE + OF_ROOT + NEVER:
        file.chmod(mode)
        said = refusal(READERS[reader], file)
        assert (said == "") is (mode in PRIVATE), f"{mode:04o} {said}"
        if said:
            assert f"can be read or changed by others (its mode is {mode:04o}) [T220]" in said
            assert f"chmod 600 {file}" in said


SCRIPT = f"""
import sys
sys.path[:0] = ["src", "tests"]
from pathlib import Path
from client.test_files_with_secrets import READERS, refusal
for mode in {OF_ROOT + NEVER}:
    for name, reader in READERS.items():
        said = refusal(reader, Path(sys.argv[1]) / f"{{mode:04o}}")
        print(f"{{mode:04o}}", name, said == "")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of root")
def test_a_file_of_root_may_be_read_by_its_group(tmp_path: Path) -> None:
    for mode in OF_ROOT + NEVER:
        file = tmp_path / f"{mode:04o}"
        file.write_text(TEXT)
        os.chown(file, 0, NOBODY)
        file.chmod(mode)
    for each in (tmp_path, *tmp_path.parents):
        if each.stat().st_mode & 0o777 == 0o700:  # as pytest makes them
            each.chmod(0o755)

    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=60,
    )

    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert len(lines) == len(OF_ROOT + NEVER) * len(READERS)
    wrong = [line for line in lines if line.endswith("True") is not (int(line[:4], 8) in OF_ROOT)]
    assert wrong == []


def test_a_pipe_is_no_file_and_may_hold_a_token_and_no_key(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, TEXT.encode())
    os.close(write)

    try:
        assert files.read_private(f"/dev/fd/{read}", "the token file")[0] == TEXT
        with pytest.raises(BadCredential, match="is not a file"):
            private_files.check_private(Path(f"/dev/fd/{read}"), "http.tls_key")
    finally:
        os.close(read)
