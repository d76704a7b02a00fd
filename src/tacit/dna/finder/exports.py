"""Files for the next program: motifs, sites, predictions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tacit.data.lines import one_line
from tacit.dna.finder.inputs import MotifInput
from tacit.dna.motif_files import Matrix, write_jaspar, write_meme

_REGION = re.compile(r"^([A-Za-z0-9_.]{1,60}):(\d{1,12})-(\d{1,12})")


def motif_names(finder: Any) -> list[str]:
    """What the motifs are called in files: their place and their consensus."""
    return [f"tacit-{number + 1}-{motif.consensus}" for number, motif in enumerate(finder.motifs_)]


def meme_text(finder: Any) -> str:
    """All motifs in the minimal MEME format."""
    motifs = finder.motifs_
    background = motifs[0].background if motifs else np.full(4, 0.25)
    matrices = [Matrix(name, motif.probabilities) for name, motif in zip(motif_names(finder), motifs, strict=True)]
    return write_meme(matrices, background, [motif.sites for motif in motifs], [motif.p_value for motif in motifs])


def jaspar_text(finder: Any) -> str:
    """All motifs as counts in the format of JASPAR."""
    pairs = zip(motif_names(finder), finder.motifs_, strict=True)
    return write_jaspar([Matrix(name, motif.counts) for name, motif in pairs])


def list_sites(finder: Any, data: MotifInput) -> list[tuple[Any, ...]]:
    """(motif, name, start, end, strand, score, letters) of every site in the positive sequences, the best first.

    Starts count from 0, at the first letter of the sequence as it came; a site may reach over its ends.
    """
    sites, names, letters = finder.sites_, data.names, data.letters
    is_positive = np.ones(len(names), bool) if data.labels is None else data.labels == 1
    rows = []
    for number, (m, motif) in enumerate(zip(finder.motif_order_.tolist(), finder.motifs_, strict=True)):
        value = sites.value[: len(names), m]
        for i in np.argsort(-value, kind="stable"):
            if value[i] <= motif.least_score:
                break
            if not is_positive[i]:
                continue
            start, strand = int(sites.start[i, m]), int(sites.strand[i, m])
            rows.append(
                (
                    number + 1,
                    names[i],
                    start,
                    start + motif.width,
                    "+-"[strand],
                    float(value[i]),
                    cut_site(letters[i] + finder.flank, start, motif.width, strand),
                )
            )
    return rows


def cut_site(sequence: str, start: int, width: int, strand: int) -> str:
    """The letters of a site along its strand; a dot for each that lies outside.

    >>> cut_site("AACGT", 3, 3, 0), cut_site("AACGT", 0, 3, 1)
    ('GT.', 'GTT')
    """
    inside = sequence[max(start, 0) : max(start + width, 0)].upper().replace("U", "T")
    site = ("." * max(-start, 0) + inside).ljust(width, ".")[:width]
    return site[::-1].translate(_SWAP) if strand else site


def sites_tsv(rows: Iterable[tuple[Any, ...]]) -> str:
    """Sites as a table."""
    return tsv(("motif", "sequence", "start", "end", "strand", "score", "site"), rows)


def sites_bed(rows: Iterable[tuple[Any, ...]], motif_labels: Sequence[str]) -> str:
    """Sites in the BED format. Where a sequence is called ``chr1:100-200``, places are those of the chromosome.

    >>> row = (1, "chr7:100-200 peak", 5, 15, "+", 3.2, "ACGTACGTAC")
    >>> sites_bed([row], ["tacit-1"]).split("\\t")[:3]
    ['chr7', '105', '115']
    """
    lines = []
    for number, name, start, end, strand, score, _ in rows:
        region = _REGION.match(name)
        chromosome, shift = (region[1], int(region[2])) if region else (_first_word(name), 0)
        low, high = max(start + shift, 0), max(end + shift, 1)
        shown = int(np.clip(round(100 * score), 0, 1000))
        lines.append(f"{chromosome}\t{low}\t{high}\t{motif_labels[number - 1]}\t{shown}\t{strand}")
    return "".join(line + "\n" for line in lines)


def tsv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with tabs: text without tabs and line ends, numbers with six digits.

    >>> tsv(("name", "score"), [("a\\tb", 0.5)])
    'name\\tscore\\na b\\t0.5\\n'
    """
    lines = ["\t".join(header)]
    for row in rows:
        cells = (f"{cell:.6g}" if isinstance(cell, float) else one_line(str(cell), 1000) for cell in row)
        lines.append("\t".join(cells))
    return "\n".join(lines) + "\n"


def _first_word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.:|+-]", "_", (name.split() or ["unnamed"])[0])[:100] or "unnamed"


_SWAP = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")
