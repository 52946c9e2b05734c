"""Names of what a run's provenance speaks of: IRIs that any text can be part of.

PROV-JSON, PROV-N and Turtle each forbid other characters in a name. So everything that one of them
might not take is percent-encoded, and the same name stands in all three, and in the crate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

PROV: Final = "http://www.w3.org/ns/prov#"
VOCABULARIES: Final[Mapping[str, str]] = {
    "prov": PROV,
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "wfprov": "http://purl.org/wf4ever/wfprov#",
    "wfdesc": "http://purl.org/wf4ever/wfdesc#",
    "bb": "urn:blackboard:wf#",
    "tocsin": "urn:tocsin:terms:",
}


@dataclass(frozen=True, slots=True)
class Name:
    """A qualified name. Its IRI is that of the prefix with the local part behind it."""

    prefix: str
    local: str

    def __str__(self) -> str:
        return f"{self.prefix}:{self.local}"


def local(text: str) -> str:
    """The text as a local part; two texts never have the same one."""
    if not text:
        return "%FF"  # no text has this byte in UTF-8
    coded = quote(text, safe="", errors="surrogatepass").replace("~", "%7E")
    # A dot must not be first or last, a hyphen not first.
    if coded[:1] in (".", "-"):
        coded = f"%{ord(coded[0]):02X}{coded[1:]}"
    return f"{coded[:-1]}%2E" if coded[-1:] == "." else coded


def prefixes(run_id: str, workflow: str) -> dict[str, str]:
    """Every prefix of the provenance of this run, and what it stands for."""
    run = f"urn:tocsin:run:{local(run_id)}:"
    return {
        **VOCABULARIES,
        "run": "urn:tocsin:run:",
        "engine": "urn:tocsin:engine:",
        "user": "urn:tocsin:user:",
        "host": "urn:tocsin:host:",
        "workflow": "urn:tocsin:workflow:",
        "step": f"urn:tocsin:workflow:{local(workflow)}:step:",
        "source": f"{run}source:",
        "parameter": f"{run}parameter:",
        "file": f"{run}file:",
        "rewritten": f"{run}rewritten:",
        "inputs": f"{run}inputs:",
        "activity": f"{run}activity:",
        "unrun": f"{run}unrun:",
    }


def run_name(run_id: str) -> Name:
    return Name("run", local(run_id))


def workflow_name(workflow: str, version: str) -> Name:
    return Name("workflow", _versioned(workflow, version))


def step_name(activity_type: str, version: str) -> Name:
    return Name("step", _versioned(activity_type, version))


def attempt_name(activity_id: str, attempt: int) -> Name:
    return Name("activity", f"{local(activity_id)}.{attempt}")


def bb(concept: str) -> Name:
    return Name("bb", local(concept))


def _versioned(text: str, version: str) -> str:
    # The first dot is where the text ends, as it has none of its own any more.
    return f"{local(text).replace('.', '%2E')}.v{local(version) if version else ''}"
