"""Boxes in the formats of annotation tools: YOLO text, LabelMe, CVAT; and the choice of the format of a path."""
