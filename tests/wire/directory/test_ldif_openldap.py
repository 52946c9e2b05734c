"""A stock OpenLDAP takes the export, finds what it is asked for, and takes our schema too.

Needs slapd and ldap-utils; on Debian: apt-get install slapd ldap-utils.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from directory_entries import entry, registration
from ldif_reader import read_ldif

from tocsin.event.value import Quantity
from tocsin.wire.directory.distinguished import read_suffix
from tocsin.wire.directory.entry import Entry, Offered
from tocsin.wire.directory.ldap import Form, directory_records, schema_ldif
from tocsin.wire.gma.names import EventName

PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/sbin:/usr/lib/openldap"
SLAPD = shutil.which("slapd", path=PLACES)
TOOLS = [shutil.which(tool, path=PLACES) for tool in ("ldapadd", "ldapsearch")]
SUFFIX = "dc=example,dc=org"
START_S = 20.0

pytestmark = pytest.mark.skipif(
    SLAPD is None or None in TOOLS, reason="needs slapd and ldap-utils (OpenLDAP)"
)

CONFIG = """\
dn: cn=config
objectClass: olcGlobal
cn: config
olcPidFile: {place}/slapd.pid

{modules}dn: cn=schema,cn=config
objectClass: olcSchemaConfig
cn: schema

{schemas}
dn: olcDatabase={{0}}config,cn=config
objectClass: olcDatabaseConfig
olcDatabase: {{0}}config
olcRootDN: cn=admin,cn=config
olcRootPW: secret

dn: olcDatabase={{1}}mdb,cn=config
objectClass: olcDatabaseConfig
objectClass: olcMdbConfig
olcDatabase: {{1}}mdb
olcSuffix: {suffix}
olcRootDN: cn=admin,{suffix}
olcRootPW: secret
olcDbDirectory: {place}/data
"""
MODULES = """\
dn: cn=module,cn=config
objectClass: olcModuleList
cn: module
olcModulePath: {modules}
olcModuleLoad: back_mdb

"""


class Ldap:
    """A running slapd with core, cosine and inetorgperson, and nothing else."""

    def __init__(self, place: Path) -> None:
        (place / "data").mkdir()
        (place / "config").mkdir()
        self._configure(place)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"ldap://127.0.0.1:{probe.getsockname()[1]}"
        assert SLAPD is not None
        self._process = subprocess.Popen(
            [SLAPD, "-d", "0", "-h", self.url, "-F", str(place / "config")]
        )
        deadline = time.monotonic() + START_S
        while self.ask("ldapsearch", "-x", "-b", "", "-s", "base").returncode:
            assert time.monotonic() < deadline, "slapd does not come up"
            assert self._process.poll() is None
            time.sleep(0.05)

    def _configure(self, place: Path) -> None:
        assert SLAPD is not None
        root = Path(SLAPD).resolve().parents[2]
        schemas = next(
            each
            for each in (
                root / "etc/ldap/schema",
                root / "etc/openldap/schema",
                Path("/etc/ldap/schema"),
                Path("/etc/openldap/schema"),
            )
            if (each / "core.ldif").exists()
        )
        modules = next(root.glob("usr/lib*/**/back_mdb.so"), None)
        text = CONFIG.format(
            place=place,
            suffix=SUFFIX,
            modules=MODULES.format(modules=modules.parent) if modules else "",
            schemas="".join(
                f"include: file://{schemas / name}.ldif\n\n"
                for name in ("core", "cosine", "inetorgperson")
            ),
        )
        (place / "config.ldif").write_text(text)
        made = subprocess.run(
            [SLAPD, "-Tadd", "-n", "0", "-F", place / "config", "-l", place / "config.ldif"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr

    def ask(self, tool: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        path = shutil.which(tool, path=PLACES)
        assert path is not None
        return subprocess.run(
            [path, "-H", self.url, *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )

    def add(self, text: str, who: str = f"cn=admin,{SUFFIX}") -> None:
        added = self.ask("ldapadd", "-x", "-D", who, "-w", "secret", given=text)
        assert added.returncode == 0, added.stderr

    def search(self, wanted: str) -> dict[str, dict[str, list[str]]]:
        """Entries by uid."""
        found = self.ask("ldapsearch", "-x", "-LLL", "-b", SUFFIX, wanted)
        assert found.returncode == 0, found.stderr
        return {
            attributes["uid"][0]: attributes
            for _, attributes in read_ldif(f"version: 1\n\n{found.stdout}")
        }

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(10)


@pytest.fixture
def ldap(tmp_path: Path) -> Iterator[Ldap]:
    server = Ldap(tmp_path)
    try:
        yield server
    finally:
        server.stop()


NAMES = [
    "uptime",
    "Uptime",  # the same to a server that ignores case
    " leading and trailing ",
    "#sharp",
    'all of , + " \\ < > ; = in one',
    "Ünïcode – 日本語 \U0001f600",
    "x" * 256,
]
LONG = "a long text, " * 70


def exported(form: Form) -> str:
    entries = [
        entry(
            f"id{number}",
            registration(
                name,
                "UptimeCPULoad",
                "{urn:lab}Load",
                "{urn:lab}load",
                "{urn:labor:ß}Ünï",
                note="two\nlines\r\n and a space ",
                long=LONG,
                empty="",
                zero="a\0b",
                memory=Quantity(2, "GB"),
                same="A",
            ),
        )
        for number, name in enumerate(NAMES)
    ]
    entries.append(entry("archive", registration("archive", kind="consumer", address=None)))
    return "".join(directory_records(entries, read_suffix(SUFFIX), form))


def test_a_stock_server_takes_the_standard_form(ldap: Ldap) -> None:
    ldap.add(exported("standard"))

    found = ldap.search("(&(objectClass=applicationProcess)(description=event UptimeCPULoad))")

    assert {uid: each["cn"] for uid, each in found.items()} == {
        f"id{number}": [name] for number, name in enumerate(NAMES)
    }
    assert found["id0"]["associatedDomain"] == ["node7"]
    assert found["id0"]["labeledURI"] == ["gma://node7:8401"]
    assert "attribute note = two\nlines\r\n and a space " in found["id0"]["description"]
    assert f"attribute long = {LONG}" in found["id0"]["description"]
    assert list(ldap.search("(&(uid=*)(!(labeledURI=*)))")) == ["archive"]


def test_with_our_schema_events_and_attributes_have_their_own_names(ldap: Ldap) -> None:
    ldap.add(schema_ldif(), "cn=admin,cn=config")
    ldap.add(exported("tocsin"))

    found = ldap.search(
        "(&(tocsinKind=producer)(tocsinEvent={urn:lab}Load)(tocsinAttribute=same=A))"
    )

    assert len(found) == len(NAMES)
    assert set(found["id0"]["tocsinEvent"]) == {
        "UptimeCPULoad",
        "{urn:lab}Load",
        "{urn:lab}load",
        "{urn:labor:ß}Ünï",
    }
    assert "memory=2 GB" in found["id0"]["tocsinAttribute"]
    assert "zero=a\0b" in found["id0"]["tocsinAttribute"]
    assert found["id0"]["tocsinExpires"] == ["19700101001000Z"]
    assert len(ldap.search("(tocsinAttribute=same=A)")) == len(NAMES)
    assert ldap.search("(tocsinAttribute=same=a)") == {}
    assert len(ldap.search("(tocsinExpires<=19700101001000Z)")) == len(NAMES) + 1


@pytest.mark.parametrize("suffix", ["o=Acme\\, Inc.", "ou=grid", "l=here", "st=Ohio", "c=us"])
def test_every_kind_of_suffix_can_be_added(ldap: Ldap, suffix: str) -> None:
    below = f"{suffix},{SUFFIX}"
    top = f"dn: {SUFFIX}\nobjectClass: domain\ndc: example\n"
    ldap.add(f"version: 1\n\n{top}")

    ldap.add(
        "".join(directory_records([entry("a", registration())], read_suffix(below), "standard"))
    )

    assert list(ldap.search("(uid=a)")) == ["a"]


ODD = ' \t\n\0#,+<>;=:\\"aAbBéÉe\u0301ßsſKKﬁ①1²２\u00ad\u200b\u00a0\u3000ΣσςİiIı日\U0001f600'


@pytest.mark.parametrize("form", ["standard", "tocsin"])
def test_values_that_nearly_are_the_same_are_no_trouble(ldap: Ldap, form: Form) -> None:
    random = Random(7)

    def odd() -> str:
        return "".join(random.choices(ODD, k=random.randint(0, 4)))

    def one(number: int) -> Entry:
        about = registration("x" + odd(), **{f"a{n}": odd() for n in range(5)})
        # No event is called so, but it makes many values of one attribute.
        offered = tuple(Offered(EventName("E" + odd(), "urn:lab")) for _ in range(30))
        return entry(f"id{number}", msgspec.structs.replace(about, events=offered))

    ldap.add(schema_ldif(), "cn=admin,cn=config")

    records = directory_records(map(one, range(200)), read_suffix(SUFFIX), form)
    ldap.add("".join(records))

    assert len(ldap.search("(uid=*)")) == 200
