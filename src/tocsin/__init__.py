"""Tocsin: services publish events, people and programs subscribe, nothing is lost.

Importing this loads nothing else, so that `tocsin pub` starts fast enough for a job script.
"""

__version__ = "0.1.0"
