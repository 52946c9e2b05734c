"""Vocabulary: every concept by its name, and which others it stands for.

The names are what messages and profiles carry: a bare word for our own ontology, `prefix:Word` for
others, the whole IRI where no prefix fits. A concept stands for itself and for all that it
subsumes; that is worked out when somebody subscribes, never when somebody publishes.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tocsin.errors import BadOntology, UnknownConcept
from tocsin.ontology.turtle import CLASSES_MAX, Terms

OWN = "urn:blackboard:wf#"
OWN_PREFIX = "bb"
NEAREST_MAX = 3
COMPARED_MAX = 100
BELOW_KEPT_MAX = 1_000_000  # names in all sets that are kept; in a deep ontology each is long
_SHOWN_MAX = 80


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept as people see it."""

    name: str
    iri: str
    parents: tuple[str, ...]
    label: str = ""
    comment: str = ""
    unit: str = ""


class Vocabulary:
    """Some files of terms as one."""

    def __init__(self, files: Iterable[Terms]) -> None:
        terms = _merged(files)
        self.prefixes: Mapping[str, str] = terms.prefixes
        named = {iri: _name(iri, terms.prefixes) for iri in terms.parents}
        self.concepts: Mapping[str, Concept] = {
            name: _concept(name, iri, terms, named) for iri, name in named.items()
        }
        self._children: dict[str, list[str]] = {}
        for concept in self.concepts.values():
            for parent in concept.parents:
                self._children.setdefault(parent, []).append(concept.name)
        self._otherwise = _other_names(self.concepts)
        self._below: dict[str, frozenset[str]] = {}
        self._below_kept = 0

    def __contains__(self, name: object) -> bool:
        return name in self.concepts

    def __iter__(self) -> Iterator[Concept]:
        return iter(self.concepts.values())

    def __len__(self) -> int:
        return len(self.concepts)

    def resolve(self, name: str) -> str:
        """The name by which the concept is known here; UnknownConcept names the nearest ones."""
        if name in self.concepts:
            return name
        prefix, _, word = name.partition(":")
        whole = self.prefixes.get(prefix, f"{prefix}:") + word  # two prefixes may mean the same
        found = self._otherwise.get(name.strip("<> ")) or self._otherwise.get(whole)
        if found is None:
            raise self.unknown(name)
        return found

    def unknown(self, name: str) -> UnknownConcept:
        """The error that there is no such concept."""
        near = self.nearest(name)
        return UnknownConcept(
            f"{name[:_SHOWN_MAX]!r} is not a concept",
            remedy=f"Did you mean {' or '.join(near)}?"
            if near
            else "`tocsin concepts ls` lists what there is.",
        )

    def nearest(self, name: str) -> list[str]:
        """The known names that look most like this one."""
        sought = name[:_SHOWN_MAX].rpartition("#")[2].removeprefix(f"{OWN_PREFIX}:").lower()
        shared = Counter(known for part in _parts(sought) for known in self._by_part.get(part, ()))
        # difflib looks at every letter: only at those that have most in common.
        folded = {known.lower(): known for known, _ in shared.most_common(COMPARED_MAX)}
        near = difflib.get_close_matches(sought, folded, n=NEAREST_MAX, cutoff=0.6)
        return [folded[each] for each in near]

    @cached_property
    def _by_part(self) -> dict[str, list[str]]:
        """Names by three letters that they have; made when the first unknown name comes."""
        found: dict[str, list[str]] = {}
        for name in self.concepts:
            for part in _parts(name.lower()):
                found.setdefault(part, []).append(name)
        return found

    def below(self, name: str) -> frozenset[str]:
        """The concept itself and all that it subsumes."""
        known = self._below.get(name)
        if known is None:
            known = frozenset(_reached(name, self.children))
            if self._below_kept + len(known) <= BELOW_KEPT_MAX:
                self._below_kept += len(known)
                self._below[name] = known
        return known

    def above(self, name: str) -> frozenset[str]:
        """The concept itself and all that subsume it."""
        return frozenset(_reached(name, lambda each: self.concepts[each].parents))

    def children(self, name: str) -> list[str]:
        """Those that are directly below."""
        return self._children.get(name, [])

    def roots(self) -> list[str]:
        """Those that nothing subsumes."""
        return [concept.name for concept in self if not concept.parents]

    def expanded(self, names: Iterable[str]) -> frozenset[str]:
        """Everything that a profile of these names asks for."""
        found: set[str] = set()
        for name in names:
            key = self.resolve(name)
            if key in found:
                continue  # and with it all that is below
            if not found or key in self._below:
                found |= self.below(key)
            else:
                _reach(key, self.children, found)
        return frozenset(found)


def _parts(text: str) -> set[str]:
    return {text[place : place + 3] for place in range(max(1, len(text) - 2))}


def _merged(files: Iterable[Terms]) -> Terms:
    """All of them; what the first says of a concept stands, and later ones add parents to it."""
    whole = Terms()
    for terms in files:
        for prefix, namespace in terms.prefixes.items():
            if whole.prefixes.setdefault(prefix, namespace) != namespace:
                raise BadOntology(
                    f"the prefix {prefix}: is {whole.prefixes[prefix]} and {namespace}",
                    remedy="Use another prefix in the file that was added.",
                )
        for iri, parents in terms.parents.items():
            whole.add(iri).update(parents)
        for iri, words in terms.words.items():
            whole.words[iri] = {**words, **whole.words.get(iri, {})}
    if len(whole.parents) > CLASSES_MAX:
        raise BadOntology(
            f"together the files name {len(whole.parents)} classes",
            remedy=f"At most {CLASSES_MAX} are kept.",
        )
    return whole


def _name(iri: str, prefixes: Mapping[str, str]) -> str:
    if iri.startswith(OWN):
        return iri.removeprefix(OWN)
    fits = [(len(space), prefix) for prefix, space in prefixes.items() if iri.startswith(space)]
    if not fits:
        return iri
    length, prefix = max(fits, key=lambda fit: fit[0])  # of equal ones the first, which is ours
    return f"{prefix}:{iri[length:]}"


def _concept(name: str, iri: str, terms: Terms, named: Mapping[str, str]) -> Concept:
    words = terms.words.get(iri, {})
    unit = words.get("unit", "").rpartition("/")[2]
    return Concept(
        name=name,
        iri=iri,
        parents=tuple(named[parent] for parent in terms.parents[iri] if parent != iri),
        label=words.get("label", ""),
        comment=words.get("comment", ""),
        unit=unit,
    )


def _other_names(concepts: Mapping[str, Concept]) -> dict[str, str]:
    """IRIs, our own prefix written out, and the bare word where only one concept has it."""
    found: dict[str, str] = {}
    bare: dict[str, str | None] = {}
    for name, concept in concepts.items():
        found[concept.iri] = name
        if concept.iri.startswith(OWN):
            found[f"{OWN_PREFIX}:{name}"] = name
        elif ":" in name:
            word = name.rpartition(":")[2]
            bare[word] = None if word in bare else name
    for word, known in bare.items():
        if known is not None and word not in concepts:
            found.setdefault(word, known)
    return found


def _reached(start: str, step: Callable[[str], Iterable[str]]) -> set[str]:
    """Everything on the way from here; a circle of concepts is walked once."""
    found: set[str] = set()
    _reach(start, step, found)
    return found


def _reach(start: str, step: Callable[[str], Iterable[str]], found: set[str]) -> None:
    """Add what is on the way from here; of what was found before, all beyond it was, too."""
    found.add(start)
    waiting = [start]
    while waiting:
        for each in step(waiting.pop()):
            if each not in found:
                found.add(each)
                waiting.append(each)
