"""Feature maps: arrays (rows, columns, d) of cells that describe an image.

A map maker is called with the pixels (height, width, 3), uint8, of an image scaled to its `side`, and returns one row
of features per cell of ``cell × cell`` pixels. `digest` identifies it and its settings, for caches. `tacit.window_maps`
reads photos, calls a maker, and places windows.
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
