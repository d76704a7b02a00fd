"""The entry of the command line: ``tacit`` and ``python -m tacit``, and the table of tacit's own commands."""

from __future__ import annotations

from collections.abc import Sequence

COMMANDS = {
    "bags": ("tacit.bags.command", "Classify bags of instances, and find the instances that decide."),
    "motif": (
        "tacit.dna.finder.command",
        "Find the motifs that distinguish POSITIVES from NEGATIVES, in DNA, RNA or protein.",
    ),
    "scan": ("tacit.dna.scan_command", "Find the sites of MOTIFS in SEQUENCES."),
    "coref": ("tacit.text.coreference.command", "Resolve coreference: find which mentions of a text mean the same."),
    "locate": ("tacit.vision.locator_command", "Locate the object in every photo, from labels and a few boxes."),
    "segment": (
        "tacit.vision.segmentation.command",
        "Segment images from the masks of a few, and boxes or labels of others.",
    ),
    "network": ("tacit.vision.maps.network_command", "Make or describe the network that photos are described by."),
    "align": ("tacit.text.alignment.command", "Align the words of parallel sentences."),
    "reasons": ("tacit.text.sentences.command", "Find the sentences that decide the labels of documents."),
    "summarise": ("tacit.text.sentences.command", "Summarise documents by some of their sentences."),
    "demo": ("tacit.demo.command", "Show tacit on a motif hidden in DNA and on rotated digits (half a minute)."),
    "examples": ("tacit.demo.example_files", "Write small input files for every command, to try it."),
    "label": ("tacit.label.command", "Answer the questions that help most, on a page of this machine."),
    "tag": ("tacit.text.tag_command", "Learn part-of-speech or entity tags from TRAIN, and tag other words."),
    "parse": ("tacit.text.parsing.command", "Learn phrase-structure trees from TRAIN, and parse other sentences."),
    "transcribe": ("tacit.signals.command", "Transcribe recordings, and find the times of their words."),
    "completion": ("tacit.commands.group", "Print the script that completes commands and options in your shell."),
}
"""Every command, the module that has it under its name, and its line in ``tacit --help``. What they share is in
`tacit.commands`, which knows none of them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; click is imported here, and not by ``import tacit``."""
    from tacit.commands import group

    group.COMMANDS.update(COMMANDS)
    return group.main(arguments)
