"""``tacit motif``: from files of sequences to motifs, sites, and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit import commands


class Widths(click.ParamType[Any]):
    """A width such as 8, a range such as 6-14, or "auto"."""

    name = "WIDTH"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str) or value == "auto":
            return value
        parts = value.split("-")
        if not all(part.isdigit() for part in parts) or len(parts) > 2:
            commands.refuse(value, "a width such as 8, a range such as 6-14, or auto", param, ctx)
        return int(parts[0]) if len(parts) == 1 else (int(parts[0]), int(parts[1]))


class Count(commands.Number):
    """A whole number, or "auto"."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return value if value == "auto" else super().convert(value, param, ctx)

    def describe(self) -> str:
        return f"'auto' or {super().describe()}"


EXAMPLES = commands.examples(
    "tacit motif peaks.fa --out peaks",
    "tacit motif bound.fa.gz free.fa.gz --width 6-14 --known jaspar.meme",
    "tacit motif --peaks peaks.narrowPeak --genome genome.fa.gz",
    "tacit motif sets/*.fa --known jaspar.meme",
    "tacit motif peptides.fa --alphabet protein",
    "tacit motif array.tsv --top 1000 --flank GTCTGTGTTC --motifs 2",
)


@click.command(epilog=EXAMPLES)
@click.argument("positives", type=commands.INPUT_PATH_OR_STDIN, required=False)
@click.argument("negatives", type=commands.INPUT_FILE_OR_FOLDER, required=False)
@click.argument("more_sets", type=commands.INPUT_FILE_OR_FOLDER, nargs=-1, metavar="[MORE_SETS]...")
@click.option("--sets", "are_sets", is_flag=True, help="Two files are two sets, each with motifs of its own.")
@commands.choice_option(
    "--against", ["shuffles", "others"], "Negatives of each of many sets: its shuffles, or the other sets."
)
@click.option("--peaks", type=commands.INPUT_FILE, help="Positives as regions of --genome, in place of POSITIVES.")
@click.option("--genome", type=commands.INPUT_FILE, help="FASTA file of the genome that BED and narrowPeak refer to.")
@commands.number_option(
    "--peak-width", 100, "Letters around the summit or the middle of a region; 0 for the whole region.", least=0
)
@click.option("--match-gc", is_flag=True, help="Draw negatives with the same shares of G and C as the positives.")
@click.option(
    "--width",
    type=Widths(),
    default="auto",
    help="Width of a motif in letters, or a range such as 6-14 to choose from by cross-validation; 'auto' starts with "
    "10 and grows over conserved letters beside the sites, also behind a gap.",
)
@click.option(
    "--motifs",
    "n_motifs",
    type=Count(int, 1, 5),
    default="auto",
    help="Number of motifs, from 1 to 5; 'auto' keeps those that are significant.",
)
@commands.choice_option(
    "--learner", ["logistic", "latent-svm"], "Loss of the final fit: logistic, or the hinge loss of a latent SVM."
)
@commands.c_option()
@commands.choice_option(
    "--alphabet", ["dna", "rna", "protein"], "Read the sequences as DNA, RNA or protein; the last two in one direction."
)
@commands.choice_option(
    "--strands", ["both", "one"], "Look for motifs on both strands of DNA, or on the given strand only."
)
@commands.number_option("--overhang", 2, "Number of letters of a site that may lie outside of its sequence.", least=0)
@click.option(
    "--flank",
    default="",
    show_default=False,
    metavar="LETTERS",
    help="Letters that follow every sequence, such as a linker.",
)
@commands.number_option(
    "--top",
    1000,
    "In a table with signals: this many sequences with the strongest signals are the positives; at least 10.",
    least=10,
)
@commands.choice_option(
    "--sites-per-sequence",
    ["auto", "zero-or-one", "one", "any"],
    "Sites of a motif that are listed per positive sequence; 'auto' chooses per motif.",
)
@click.option("--motif-only", is_flag=True, help="Predict from motifs and composition, without k-mer counts.")
@click.option("--known", type=commands.INPUT_FILE, help="Known motifs (MEME or JASPAR format) to compare with.")
@click.option(
    "--time-budget",
    type=commands.POSITIVE,
    metavar="SECONDS",
    help="Stop after this many seconds; keep the best model so far.",
)
@click.option(
    "--checkpoint",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that keeps the motifs found so far, for --resume.",
)
@click.option("--resume", is_flag=True, help="Continue from the file that --checkpoint names.")
@commands.ask_option("sequences whose sites are least certain, to check")
@commands.run_options(out="motifs")
def motif(
    run: commands.CommandRun,
    positives: Path | None,
    negatives: Path | None,
    more_sets: tuple[Path, ...],
    are_sets: bool,
    against: str,
    peaks: Path | None,
    genome: Path | None,
    peak_width: int,
    match_gc: bool,
    top: int,
    known: Path | None,
    n_asked: int | None,
    **options: Any,
) -> None:
    """Find the motifs that distinguish POSITIVES from NEGATIVES, in DNA, RNA or protein.

    Files are FASTA or FASTQ, plain or gzipped, - for standard input, folders of shards (tacit.Shards.write), or with
    --genome regions in BED or narrowPeak. Without NEGATIVES, the positives are shuffled to make them. A table
    (.tsv) has sequences with labels, or sequences with signals, of which the strongest are the positives. Three files
    or more are sets: each has motifs of its own, in a folder of its own, and a table of motifs and sets. Writes
    report.html, motifs.meme, motifs.jaspar, sites.tsv, sites.bed, sites.gff3, logos, predictions.tsv, model.tacit and
    run.json.
    """
    from tacit.data.shard_folder import manifest_or_file
    from tacit.dna.files import read_motifs
    from tacit.dna.finder import files
    from tacit.dna.finder.evidence import separation_warnings
    from tacit.dna.finder.files import read_motif_input
    from tacit.dna.finder.finder import MotifFinder
    from tacit.dna.finder.known import check_known, match_motifs
    from tacit.dna.finder.placement import describe_pair, find_doubtful_sites
    from tacit.dna.finder.shapes import describe_overlap, describe_spacer

    options["C"] = "auto" if options["C"] is None else options["C"]
    finder = MotifFinder(**options, **run.settings)
    run.check_options(finder)
    is_protein = options["alphabet"] == "protein"
    if is_protein and (genome is not None or match_gc):
        raise click.UsageError("--genome and --match-gc are for DNA; leave them out with --alphabet protein")
    if more_sets or are_sets:
        from tacit.dna.finder.sets_command import find_in_sets

        sets = _check_sets([path for path in (positives, negatives, *more_sets) if path is not None], genome, options)
        refused = {"--peaks": peaks, "--match-gc": match_gc, "--checkpoint": options["checkpoint"]}
        for name in (name for name, value in refused.items() if value):
            raise click.UsageError(f"{name} is for one set; leave it out, or run the sets one by one")
        reading = {"top": top, "peak_width": peak_width, "is_protein": is_protein}
        find_in_sets(run, sets, options, against=against, known=known, genome=genome, **reading)
        return
    if against != "shuffles":
        raise click.UsageError("--against others needs several sets: give three files or more, or two and --sets")
    first = _check_inputs(positives, negatives, peaks, genome, match_gc)
    inputs = [manifest_or_file(path) for path in (first, negatives) if path is not None]
    with run.writing(*inputs, genome, known) as folder:
        data = read_motif_input(
            *(first, negatives),
            top=top,
            seed=run.seed,
            genome=genome,
            peak_width=peak_width,
            match_gc=match_gc,
            is_protein=is_protein,
        )
        library = [] if known is None else read_motifs(known)
        check_known(library, finder.letters_)
        run.note(f"{data.summary}: looking for motifs")
        finder.fit(data.letters, data.labels)
        run.note_status(finder.status_)
        matches = match_motifs(finder.motifs_, library, finder.letters_)
        sites = files.list_sites(finder, data)
        found, quality = write_results(run, folder, finder, data, sites, matches)
        facts = [motif_facts(one, number, matches) for number, one in enumerate(finder.motifs_)]
        if n_asked is not None and finder.motifs_:
            doubts = find_doubtful_sites(finder, data, n_asked)
            commands.write_questions(folder, doubts.names, doubts.usefulness, doubts.guesses)
        for known_facts, place in zip(facts, finder.placements_, strict=True):
            known_facts["placement"] = {**place._asdict(), "sites_per_sequence": place.model}
        run.record(pairs=[pair._asdict() for pair in finder.pairs_])
        run.record(motifs=facts, auroc={name: area[0] for name, area in finder.evidence_.items()}, summary=data.summary)
    for number, one in enumerate(finder.motifs_):
        run.say(f"motif {number + 1}: {one.consensus}  E = {one.e_value:.2g}, p = {one.p_value:.2g}, {one.sites} sites")
        for line in describe_match(matches[number][0]) if matches else ():
            run.say(f"  {line}")
        if one.spacer is not None:
            run.say(f"  it {describe_spacer(one)}")
        if one.overlap is not None:
            run.say(f"  it {describe_overlap(one)}")
    remarks = [describe_pair(pair, finder.width_) for pair in finder.pairs_]
    if options["alphabet"] == "dna" and any("U" in own.upper() for own in data.letters):
        remarks.append("the sequences have U and are read as DNA with its other strand; for RNA give --alphabet rna")
    for text in filter(None, (*remarks, *separation_warnings(finder.length_area_, finder.gc_area_))):
        run.say(text)
    scan = f"search other sequences with: tacit scan {run.out / 'model.tacit'} SEQUENCES"
    if is_protein:
        scan = f"in Python, tacit.load({str(run.out / 'model.tacit')!r}) predicts other sequences"
    then = scan if finder.motifs_ else "try other widths: --width 6-14"
    run.finish(found, quality, f"open {run.out / 'report.html'}; {then}")


def _check_sets(paths: list[Path], genome: Path | None, options: Any) -> list[Path]:
    """The files of many sets; those that do not go together are refused."""
    from tacit.dna.regions import is_regions

    if len(paths) < 2:
        raise click.UsageError(f"--sets needs two files or more, got {len(paths)}")
    if any(is_regions(path) for path in paths) != (genome is not None):
        raise click.UsageError("regions in BED or narrowPeak and --genome need each other; give both or neither")
    if any(str(path) == "-" for path in paths):
        raise click.UsageError("standard input is one set; write it to a file to compare it with others")
    return paths


def _check_inputs(
    positives: Path | None, negatives: Path | None, peaks: Path | None, genome: Path | None, match_gc: bool
) -> Path:
    """The file of positives; inputs that do not go together are refused."""
    from tacit.dna.regions import is_regions

    if (positives is None) == (peaks is None):
        raise click.UsageError("give one of POSITIVES and --peaks (with --genome), not both")
    if peaks is not None and not is_regions(peaks):
        raise click.UsageError(f"--peaks must end in .bed or .narrowPeak (with --genome), got {str(peaks)!r}")
    first = positives if positives is not None else peaks
    assert first is not None
    has_regions = any(is_regions(path) for path in (first, negatives) if path is not None)
    if has_regions != (genome is not None):
        raise click.UsageError("regions in BED or narrowPeak and --genome need each other; give both or neither")
    if match_gc and negatives is None:
        raise click.UsageError("--match-gc needs NEGATIVES; shuffles have the same share of G and C anyway")
    return first


def describe_match(best: Any) -> list[str]:
    """The most similar known motif: what it is, and the aligned letters."""
    from tacit.dna.finder.known import LIKENESS

    like = "like" if best.e_value < LIKENESS else "unlike all known motifs; the best match is"
    text = f"{like} {best.name}: E = {best.e_value:.2g}, p = {best.p_value:.2g}, r = {best.correlation:.2f}"
    found, known = best.alignment
    return [text, f"  found  {found}".rstrip(), f"  known  {known}".rstrip()]


def write_results(
    run: commands.CommandRun, folder: Any, finder: Any, data: Any, sites: Any, matches: Any
) -> tuple[str, str]:
    """Write all files but run.json; return what was found, and how good it is."""
    from tacit.dna.finder import files
    from tacit.dna.finder.page import motif_page
    from tacit.dna.logos import logo_svg

    folder.write_text("motifs.meme", files.meme_text(finder.motifs_))
    if finder.alphabet != "protein":  # the format has four rows
        folder.write_text("motifs.jaspar", files.jaspar_text(finder.motifs_))
    header: tuple[str, ...] = ("motif", "sequence", "start", "end", "strand", "score", "site")
    folder.write_text("sites.tsv", files.tsv(header, sites))
    folder.write_text("sites.bed", files.sites_bed(sites, files.name_motifs(finder.motifs_)))
    gff = files.gff_lines(sites, files.name_motifs(finder.motifs_), [None] * len(sites))
    folder.write_text("sites.gff3", "##gff-version 3\n" + gff)
    commands.draw_to_files()
    for number, one in enumerate(finder.motifs_):
        svg = logo_svg(one.probabilities, one.background, standalone=True, letters=finder.letters_.letters)
        folder.write_text(f"logo_{number + 1}.svg", str(svg) + "\n")
        _write_png(folder.path(f"logo_{number + 1}.png"), one, finder.letters_.letters)
    folder.write_text("predictions.tsv", _predictions(finder, data))
    if matches:
        header = ("motif", "consensus", "known", "correlation", "p_value", "e_value", "offset", "strand", "overlap")
        rows = [
            (
                number + 1,
                one.consensus,
                m.name,
                m.correlation,
                m.p_value,
                m.e_value,
                m.offset,
                "+-"[m.strand],
                m.overlap,
            )
            for number, one in enumerate(finder.motifs_)
            for m in matches[number]
        ]
        folder.write_text("matches.tsv", files.tsv(header, rows))
    finder.save(folder.path("model.tacit"))
    names = ", ".join(one.consensus for one in finder.motifs_)
    found = f"{commands.count_noun(len(finder.motifs_), 'motif')} ({names})" if names else "no significant motif"
    quality = f"held-out AUROC: {', '.join(f'{name} {area[0]:.3f}' for name, area in finder.evidence_.items())}"
    how = (
        "The model is model.tacit: tacit scan finds its motifs in other sequences, and in Python tacit.load returns "
        "an estimator."
    )
    run.write_report(folder, motif_page(finder, data, sites, matches=matches), found, quality, how)
    return found, quality


def _write_png(path: Path, one: Any, letters: str) -> None:
    """Write the logo as a picture."""
    from tacit import plot

    ax = plot.logo(one.probabilities, letters=letters)
    ax.figure.savefig(path, dpi=150)
    plot.pyplot().close(ax.figure)


def _predictions(finder: Any, data: Any) -> str:
    """Held-out sequences with their labels and scores."""
    from tacit.dna.finder import files

    held = finder.held_out_
    scores = [name for name in ("motifs and k-mers", "motifs", "k-mers", "composition") if name in held]
    n = len(data.names)
    rows = []
    for row, i in enumerate(held["rows"].tolist()):
        name = data.names[i] if i < n else f"shuffle of {data.names[i - n]}"
        label = finder.classes_[int(held["is_positive"][row])]
        rows.append((name, label, *(float(held[kind][row]) for kind in scores)))
    return files.tsv(("sequence", "label", *(name.replace(" ", "_") for name in scores)), rows)


def motif_facts(one: Any, number: int, matches: Any) -> dict[str, Any]:
    """What run.json says about a motif."""
    names = (
        "consensus",
        "width",
        "p_value",
        "e_value",
        "is_significant",
        "sites",
        "in_positives",
        "in_negatives",
        "bits",
    )
    facts: dict[str, Any] = {name: getattr(one, name) for name in names} | {"agreement_of_starts": one.agreement}
    if one.spacer is not None:
        facts["spacer"] = one.spacer._asdict()
    if one.overlap is not None:
        found = one.overlap
        strand = "-" if found.on_other_strand else "+"
        facts["overlap"] = {"motif": found.motif, "offset": found.offset, "strand": strand, "share": found.share}
    if matches:
        best = matches[number][0]
        facts["match"] = best._asdict()
    return facts
