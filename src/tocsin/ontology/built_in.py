"""The ontology that comes with Tocsin, and the one that this process goes by."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from tocsin.ontology.turtle import Terms, read_turtle
from tocsin.ontology.vocabulary import Vocabulary

FILE = "bb-workflow.ttl"

_used: Vocabulary | None = None


@cache
def own_terms() -> Terms:
    """The terms of the Turtle file that is part of the package."""
    return read_turtle(files("tocsin.ontology").joinpath(FILE).read_bytes(), FILE)


@cache
def built_in() -> Vocabulary:
    """The vocabulary of a broker to which no site has added anything."""
    return Vocabulary([own_terms()])


def in_use() -> Vocabulary:
    """What filters and messages go by here: the built-in one until `use` says otherwise."""
    return _used or built_in()


def use(vocabulary: Vocabulary | None) -> None:
    """Go by this one from now on. Called once, by whoever starts the process."""
    global _used
    _used = vocabulary
