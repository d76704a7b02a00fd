"""The English Web Treebank: words and their tags."""

from __future__ import annotations

from typing import Any

from tacit.data.parameters import one_of
from tacit.data.reading import find_folder
from tacit.text.tagged_words import TaggedWords, read_two_columns


def ewt(part: str = "train", folder: Any = None) -> TaggedWords:
    """Words and universal tags of the English Web Treebank: "train" or "dev" (``ewt/train.tsv.gz``)."""
    one_of("part", part, ("train", "dev"))
    return read_two_columns(find_folder(folder, "ewt") / f"{part}.tsv.gz")
