"""A small valid file of every kind that tacit reads, and the call that reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.io import wavfile

from tacit.bags.reading import read_bag_file
from tacit.data.shards import Shards
from tacit.datasets import read_idx, uniprobe, write_idx
from tacit.datasets.pautomac_files import read_pautomac
from tacit.dna.files import read_motifs
from tacit.dna.finder.files import read_motif_input
from tacit.dna.pieces import iterate_pieces
from tacit.dna.regions import read_peaks
from tacit.label.clusters import Clusters
from tacit.label.masks import Masks
from tacit.label.sentences import DecisiveSentences
from tacit.label.session import Session
from tacit.label.sites import Sites
from tacit.label.tags import Tags
from tacit.ranking import Triplets
from tacit.signals.command import read_recordings
from tacit.text import read_conll, read_json, read_links, read_parallel, read_raw_text, read_steps, read_trees
from tacit.text.parsing.command import read_sentences
from tacit.text.sentences.vectors import read_document_file
from tacit.text.tagged_words import read_tagged
from tacit.vision.box_formats import read_table
from tacit.vision.photos import image_size, read_image
from tacit.vision.segmentation.class_folders import (
    read_class_folder,
    read_class_labels,
    read_class_mask,
    read_class_table,
)
from tacit.vision.segmentation.folders import read_folder
from tests.replay.programs import Program, from_source

SAMPLES = {
    "trees.ptb": "(S (NP (D the) (N dog)) (VP (V ran)))\n(S (NP (N dogs)) (VP (V run) (ADVP (RB far))))\n",
    "a.conllu": "# text = Dogs run\n1\tDogs\tdog\tNOUN\tNNS\t_\t2\tsubj\t_\t_\n"
    "2\trun\trun\tVERB\tVBP\t_\t0\troot\t_\t_\n\n",
    "words.tsv": "the\tD\ndog\tN\n\nruns\tV\n",
    "tale.conll": "#begin document (tale); part 000\ntale 0 0 Al - (1)\ntale 0 1 saw - -\n"
    "tale 0 2 him - (1)\n\n#end document\n",
    "tale.json": '{"id": "a", "sentences": [["Al", "saw", "him"]], "clusters": [[[0, 0], [2, 2]]]}\n',
    "pairs.txt": "das haus ||| the house\nein buch ||| a book\n",
    "links.txt": "1-1 2p2\n1-2\n",
    "text.txt": "It is good. We like it.\n\nIt rains.\n",
    "steps.csv": "sequence,tag,u,v\na,x,0.5,1\na,y,0.25,2\nb,x,1,1\n",
    "bags.csv": "bag,label,u,v\na,1,0.5,1\na,1,0.25,2\nb,0,1,1\n",
    "reviews.jsonl": '{"text": "It is good. It rains.", "label": "yes"}\n'
    '{"sentences": ["Bad."], "label": "no", "known": [0]}\n',
    "reviews.csv": "text,label,summary\nIt is good. It rains.,yes,It rains.\nIt is bad.,no,\n",
    "boxes.csv": "filename,width,height,class,xmin,ymin,xmax,ymax\na.png,40,30,cat,1,2,20,25\n",
    "voc/a.xml": "<annotation><filename>a.png</filename><size><width>40</width><height>30</height></size><object>"
    "<name>cat</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>20</xmax><ymax>25</ymax></bndbox></object></annotation>",
    "coco.json": '{"images": [{"id": 1, "file_name": "a.png", "width": 40, "height": 30}], "categories": [{"id": 1, '
    '"name": "cat"}], "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 19, 23]}]}',
    "yolo/classes.txt": "cat\ndog\n",
    "yolo/a.txt": "0 0.5 0.5 0.25 0.25\n1 0.25 0.25 0.1 0.1\n",
    "yaml/data.yaml": "names:\n  0: cat\n  1: dog\n",
    "yaml/a.txt": "1 0.1 0.1 0.5 0.1 0.5 0.5\n",
    "labelme.json": '{"imagePath": "a.png", "imageWidth": 40, "imageHeight": 30, "shapes": [{"label": "cat", '
    '"shape_type": "rectangle", "points": [[1, 2], [20, 25]]}]}',
    "cvat.xml": '<annotations><image name="a.png" width="40" height="30"><box label="cat" xtl="1" ytl="2" xbr="20" '
    'ybr="25"/><polygon label="dog" points="1,2;5,6;3,9"/></image></annotations>',
    "probes/052.tsv": "ACGT\t+1\t1\nGGTT\t-1\t2\nACGA\t1\t1\nCCTT\t-1\t1\n",
    "few.pautomac": "2 3\n3 0 2 1\n0\n",
    "a.fa": ">chr1 first\nACGTTGCAACGT\nACGT\n>chr2\nGGGTTTACGTAACC\n",
    "a.fastq": "@r1\nACGT\n+\nIIII\n",
    "table.tsv": "ACGT\t+1\t1\nGGTT\t-1\t2\n",
    "a.meme": "MEME version 4\n\nALPHABET= ACGT\n\nMOTIF M1\n"
    "letter-probability matrix: alength= 4 w= 2\n1 0 0 0\n.2 .3 .3 .2\n",
    "a.jaspar": ">M1 name\nA [ 1 2 3 ]\nC [ 3 2 1 ]\nG [ 1 1 1 ]\nT [ 0 1 2 ]\n",
    "a.bed": "chr1\t0\t8\tone\t3\t+\nchr2\t2\t9\n",
    "a.narrowPeak": "chr1\t0\t8\tone\t3\t.\t1.5\t2\t3\t4\n",
    "classes.csv": "name,value,members\nsky,1,\ncow,2,\nanimal,3,cow\nvoid,0,\n",
    "labels.csv": "file,classes\na.png,sky;cow\n",
    "judged.svm": "2 qid:1 1:0.5 2:1\n0 qid:1 1:0.25\n1 qid:2 2:3\n0 qid:2 1:1\n",
    "rows.svm": "2 1:0.5 2:1\n0 1:0.25\n1 2:3\n0 1:1\n",
    "rows.svm.query": "2\n2\n",
    "painted/classes.csv": "name,value\nsky,1\ncow,2\nvoid,0\n",
    "painted/labels.csv": "file,classes\na.png,sky;cow\n",
    "drawn/labels.csv": "file,contains\na.png,yes\n",
    "drawn/boxes.csv": "file,xmin,ymin,xmax,ymax\na.png,0,0,8,6\n",
    "label_tags/open.tsv": "the\tD\ndog\tN\n\na\t_\ncat\t_\n",
    "label_sentences/open.jsonl": '{"id": "a", "sentences": ["It is good.", "We ate."], "label": "yes"}\n'
    '{"id": "b", "sentences": ["It is bad.", "We left."], "label": "no"}\n'
    '{"id": "c", "sentences": ["So bad.", "It rains.", "No."], "label": "no"}\n',
    "label_sites/open.fa": ">a\nACGTTGCAACGTACGT\n>b\nTTGCAACGAATTCCGG\n",
    "label_clusters/open.conll": "#begin document (tale); part 000\ntale 0 0 Al - (1)\ntale 0 1 saw - -\n"
    "tale 0 2 him - (1)\n\n#end document\n#begin document (other); part 000\nother 0 0 Bo - (1)\n"
    "other 0 1 saw - -\nother 0 2 her - (2)\n\n#end document\n",
    "sounds/sounds.tsv": "file\ttranscript\na.wav\tone two\n",
}
_JOURNALS = {
    "tags": ("tag", "open.tsv", ("sentence 2", "answer", ["D", "N"])),
    "sentences": ("reasons", "open.jsonl", ("c", "answer", [1])),
    "sites": ("motif", "open.fa", ("b", "answer", [2, 1])),
    "clusters": ("coref", "open.conll", ("2 other 000", "answer", [0, 0])),
    "masks": ("segment", "", ("b.png", "answer", [0])),
}
"""Tasks of `tacit label`: the name in their journals, their input, and an answer."""

for _name, (_task, _, _answer) in _JOURNALS.items():
    _lines = [{"task": _task, "version": 1}, dict(zip(("item", "kind", "answer"), _answer, strict=True))]
    SAMPLES[f"label_{_name}/answers.jsonl"] = "".join(json.dumps(line) + "\n" for line in _lines)

READS = """
read_sentences(Path("trees.ptb"))
read_trees("trees.ptb")
read_tagged("a.conllu")
read_tagged("words.tsv")
read_conll("tale.conll")
read_json("tale.json")
read_parallel("pairs.txt")
read_links("links.txt")
read_raw_text("text.txt")
read_steps("steps.csv")
read_bag_file(Path("bags.csv"), "bag", "label")
read_document_file(Path("reviews.jsonl"))
read_document_file(Path("text.txt"))
read_document_file(Path("reviews.csv"))
read_table("boxes.csv")
read_table("voc")
read_table("coco.json")
read_table("yolo", [("a.png", 40, 30)])
read_table("yaml", [("a.png", 40, 30)])
read_table("labelme.json")
read_table("cvat.xml")
read_pautomac("few.pautomac")
uniprobe("probes", "052", fold=1)
read_motif_input(Path("a.fa"), Path("a.fa"), top=3, seed=0)
read_motif_input(Path("a.fastq"), Path("a.fa"), top=3, seed=0)
read_motif_input(Path("table.tsv"), None, top=1, seed=0)
read_motif_input(Path("letters"), None, top=1, seed=0)
count_letters(Path("a.fa"))
read_motifs("a.meme")
read_motifs("a.jaspar")
read_peaks("a.bed", "a.fa", 4)
read_peaks("a.narrowPeak", "a.fa", 4)
read_class_mask(Path("mask.png"), read_class_table(Path("classes.csv")))
read_class_labels(Path("labels.csv"), [Path("a.png")], read_classes(Path("classes.csv")))
read_class_folder("painted")
read_folder("drawn", objects=[1])
Triplets.from_svmlight("judged.svm")
Triplets.from_svmlight("rows.svm", "rows.svm.query")
use_answers("tags", Path("label_tags"))
use_answers("sentences", Path("label_sentences"))
use_answers("sites", Path("label_sites"))
use_answers("clusters", Path("label_clusters"))
use_answers("masks", Path("label_masks"))
read_recordings(Path("sounds"), Path("sounds/sounds.tsv"))
read_idx("a.idx")
read_image("mask.png")
image_size("mask.png")
sum_shards("rows")
"""


def count_letters(path: Path) -> int:
    """Letters of all sequences, which are read piece by piece."""
    return sum(piece.codes.size for piece in iterate_pieces(path, 8))


def read_classes(path: Path) -> Any:
    return read_class_table(path).classes


def sum_shards(folder: str) -> float:
    """The sum of all numbers in a folder of shards."""
    shards = Shards.open(folder)
    shards.verify()
    return float(shards.in_memory().values.sum())


def use_answers(kind: str, folder: Path) -> None:
    """Learn from the answers of a folder, as ``tacit label`` does, and write them in the formats of commands."""
    tasks: dict[str, Any] = {
        "tags": Tags,
        "sentences": DecisiveSentences,
        "sites": Sites,
        "clusters": Clusters,
        "masks": Masks,
    }
    session = Session(tasks[kind](folder / _JOURNALS[kind][1]), folder)
    session.task.learn(*session.answers())
    session.export()


CALLED: list[Any] = [
    Path, Triplets, count_letters, image_size, read_bag_file, read_class_folder, read_class_labels,
    read_class_mask, read_class_table, read_classes, read_conll, read_document_file, read_folder, read_idx, read_image,
    read_json, read_links, read_motif_input, read_motifs, read_parallel, read_pautomac, read_peaks, read_raw_text,
    read_recordings, read_sentences, read_steps, read_table, read_tagged, read_trees, sum_shards, uniprobe,
    use_answers,
]  # fmt: skip


def readers(home: Path) -> Iterator[Program]:
    """Every reader of a kind of file, one program each."""
    home.mkdir(parents=True, exist_ok=True)
    for name, content in SAMPLES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content, encoding="utf-8")
    image = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8) % 3, "P")
    image.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0])
    for name in ("mask.png", "painted/images/a.png", "painted/masks/a.png", "drawn/images/a.png", "drawn/masks/a.png"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        image.save(home / name)
    drawn = np.zeros((40, 40), np.uint8)
    drawn[10:30, 10:30] = 255
    for name in ("images/a.png", "images/b.png", "masks/a.png"):
        (home / "label_masks" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(drawn).save(home / "label_masks" / name)
    wavfile.write(home / "sounds" / "a.wav", 8000, (1000 * np.sin(np.arange(400))).astype(np.int16))
    write_idx(home / "a.idx", np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
    if not (home / "rows").exists():
        Shards.write(home / "rows", [np.arange(6.0).reshape(3, 2), np.ones((1, 2))], 2)
        Shards.write(home / "letters", ["ACGTACGT", "GGTT"], 1)
    names = {own.__name__: own for own in CALLED}
    for number, line in enumerate(READS.strip().splitlines()):
        yield from_source(f"reader {number}: {line[:40]}", line, names, home)
