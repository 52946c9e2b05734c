"""The concepts of a site: Turtle files that are added to the built-in ontology."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tocsin.errors import BadOntology
from tocsin.ontology import Vocabulary, read_turtle, use
from tocsin.ontology.built_in import own_terms
from tocsin.ontology.turtle import BYTES_MAX


def site_vocabulary(files: Iterable[str]) -> Vocabulary:
    """The built-in concepts and those of these files."""
    return Vocabulary([own_terms(), *(read_turtle(_read(file), file) for file in files)])


def use_ontology(files: Iterable[str]) -> None:
    """Let this process go by the built-in concepts and those of these files."""
    named = tuple(files)
    use(site_vocabulary(named) if named else None)


def _read(file: str) -> bytes:
    try:
        with Path(file).open("rb") as opened:
            return opened.read(BYTES_MAX + 1)
    except OSError as error:
        raise BadOntology(
            f"{file} cannot be read: {error.strerror or error}",
            remedy="Name a Turtle file that exists in blackboard.ontology.",
        ) from None
