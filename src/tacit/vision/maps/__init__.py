"""Feature maps: what turns an image into an array (rows, columns, d) of cells.

A map maker is called with pixels (height, width, 3), uint8, of an image whose longest side it named as `side`, and
returns one row of features per cell of ``cell × cell`` of these pixels. `digest` names it and its settings, for
caches. `tacit.window_maps` reads photos, calls a maker, and places windows.
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
