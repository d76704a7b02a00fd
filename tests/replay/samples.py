"""A small valid file of every kind that tacit reads, and the call that reads it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tacit import datasets
from tacit.label.journal import Journal
from tacit.ranking import Triplets
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
    "labelme.json": '{"imagePath": "a.png", "imageWidth": 40, "imageHeight": 30, "shapes": [{"label": "cat", '
    '"shape_type": "rectangle", "points": [[1, 2], [20, 25]]}]}',
    "cvat.xml": '<annotations><image name="a.png" width="40" height="30"><box label="cat" xtl="1" ytl="2" xbr="20" '
    'ybr="25"/><polygon label="dog" points="1,2;5,6;3,9"/></image></annotations>',
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
    "answers.jsonl": '{"task": "tag", "version": 1}\n{"time": 1.5, "item": "s1", "kind": "answer", "answer": ["D"]}\n',
    "sounds/sounds.tsv": "file\ttranscript\na.wav\tone two\n",
}

READS = """
parse.read_sentences(Path("trees.ptb"))
tagged_words.read_tagged("a.conllu")
tagged_words.read_tagged("words.tsv")
documents.read_conll("tale.conll")
documents.read_json("tale.json")
links.read_parallel("pairs.txt")
links.read_links("links.txt")
raw_text.read_raw_text("text.txt")
steps.read_steps("steps.csv")
bag_tables.read_bag_file(Path("bags.csv"), "bag", "label")
vectors.read_document_file(Path("reviews.jsonl"))
vectors.read_document_file(Path("reviews.csv"))
boxes.read_table("boxes.csv")
boxes.read_table("voc")
boxes.read_table("coco.json")
boxes.read_table("yolo", {"a": ("a.png", 40, 30)})
boxes.read_table("labelme.json")
boxes.read_table("cvat.xml")
pautomac_files.read_pautomac("few.pautomac")
motif_files.read_motif_input(Path("a.fa"), Path("a.fa"), top=3, seed=0)
motif_files.read_motif_input(Path("a.fastq"), Path("a.fa"), top=3, seed=0)
motif_files.read_motif_input(Path("table.tsv"), None, top=1, seed=0)
dna_files.read_motifs("a.meme")
dna_files.read_motifs("a.jaspar")
regions.read_peaks("a.bed", "a.fa", 4)
regions.read_peaks("a.narrowPeak", "a.fa", 4)
class_folders.read_class_mask(Path("mask.png"), class_folders.read_class_table(Path("classes.csv")))
class_folders.read_class_labels(Path("labels.csv"), [Path("a.png")], read_classes(Path("classes.csv")))
Triplets.from_svmlight("judged.svm")
Journal(Path("answers.jsonl"), "tag").read()
sounds.read_recordings(Path("sounds"), Path("sounds/sounds.tsv"))
digits.read_idx("a.idx")
photos.read_image("mask.png")
boxed("mask.png")
"""


def readers(home: Path) -> Iterator[Program]:
    """Every reader of a kind of file, one program each."""
    from PIL import Image
    from scipy.io import wavfile

    home.mkdir(parents=True, exist_ok=True)
    for name, content in SAMPLES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content, encoding="utf-8")
    image = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8) % 3, "P")
    image.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0])
    image.save(home / "mask.png")
    wavfile.write(home / "sounds" / "a.wav", 8000, (1000 * np.sin(np.arange(400))).astype(np.int16))
    datasets.write_idx(home / "a.idx", np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
    modules = {
        "parse": "text.parsing.command",
        "tagged_words": "text.tagged_words",
        "documents": "text.documents",
        "links": "text.alignment.links",
        "raw_text": "text.raw_text",
        "steps": "text.steps",
        "bag_tables": "bags.tables",
        "vectors": "text.sentences.vectors",
        "boxes": "vision.box_formats.reading",
        "photos": "vision.photos",
        "pautomac_files": "datasets.pautomac_files",
        "motif_files": "dna.finder.files",
        "dna_files": "dna.files",
        "regions": "dna.regions",
        "class_folders": "vision.segmentation.class_folders",
        "sounds": "signals.command",
        "digits": "datasets.digits",
    }
    names: dict[str, Any] = {name: importlib.import_module(f"tacit.{module}") for name, module in modules.items()}
    names |= {
        "Path": Path,
        "Triplets": Triplets,
        "Journal": Journal,
        "boxed": names["photos"].image_size,
        "read_classes": lambda path: names["class_folders"].read_class_table(path).classes,
    }
    for number, line in enumerate(READS.strip().splitlines()):
        yield from_source(f"reader {number}: {line[:40]}", line, names, home)
