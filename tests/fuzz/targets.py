"""All targets: importing this enters them into the list."""

from tests.fuzz import bags, files, fits, oracles, rankings, readers, strings, texts, uncertain
from tests.fuzz.registry import COVERED, TARGETS

__all__ = [
    "COVERED",
    "TARGETS",
    "bags",
    "files",
    "fits",
    "oracles",
    "rankings",
    "readers",
    "strings",
    "texts",
    "uncertain",
]
