"""The concepts that name what a blackboard message says, and which of them subsume which."""

from tocsin.ontology.built_in import built_in, in_use, use
from tocsin.ontology.turtle import Terms, read_turtle
from tocsin.ontology.vocabulary import Concept, Vocabulary

__all__ = ["Concept", "Terms", "Vocabulary", "built_in", "in_use", "read_turtle", "use"]
