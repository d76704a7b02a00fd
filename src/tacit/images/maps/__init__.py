"""Feature maps: what turns an image into an array (rows, columns, d) of cells.

A map maker is called with pixels (height, width, 3), uint8, of an image whose longest side it named as `side`, and
returns one row of features per cell of ``cell × cell`` of these pixels. `digest` names it and its settings, for
caches. `tacit.window_maps` reads photos, calls a maker, and places windows.
"""

from tacit.images.maps.handmade import ColourMap, GradientMap, TextureMap
from tacit.images.maps.network import CalledMap, NetworkMap
from tacit.images.maps.stack import MapStack, handmade_maps
from tacit.images.maps.words import WordMap

__all__ = [
    "CalledMap",
    "ColourMap",
    "GradientMap",
    "MapStack",
    "NetworkMap",
    "TextureMap",
    "WordMap",
    "handmade_maps",
]
