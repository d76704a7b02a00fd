"""Readers of public formats, and small generators.

Readers of data sets take a folder, or look below the one that the environment variable TACIT_DATA names.
"""

from tacit.datasets.box_writers import write_boxes_coco, write_boxes_csv, write_boxes_voc
from tacit.datasets.boxes import BoxTable, boxes_coco, boxes_csv, boxes_voc, join_boxes
from tacit.datasets.dna import planted_motif, uniprobe
from tacit.datasets.drawn_digits import DrawnDigits, drawn_digits
from tacit.datasets.images import ImageFiles, image_folder, image_size, read_image
from tacit.datasets.location import find_folder
from tacit.datasets.mammals import Mammals, mammals
from tacit.datasets.mnist import Images, mnist, read_idx, write_idx
from tacit.datasets.pautomac import Pautomac, PautomacStrings, pautomac, read_pautomac
from tacit.datasets.tagged_words import TaggedWords, ewt, read_conllu, read_tagged, read_two_columns, write_two_columns

__all__ = [
    "BoxTable",
    "DrawnDigits",
    "ImageFiles",
    "Images",
    "Mammals",
    "Pautomac",
    "PautomacStrings",
    "TaggedWords",
    "boxes_coco",
    "boxes_csv",
    "boxes_voc",
    "drawn_digits",
    "ewt",
    "find_folder",
    "image_folder",
    "image_size",
    "join_boxes",
    "mammals",
    "mnist",
    "pautomac",
    "planted_motif",
    "read_conllu",
    "read_idx",
    "read_image",
    "read_pautomac",
    "read_tagged",
    "read_two_columns",
    "uniprobe",
    "write_boxes_coco",
    "write_boxes_csv",
    "write_boxes_voc",
    "write_idx",
    "write_two_columns",
]
