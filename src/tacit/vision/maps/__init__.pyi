from tacit.vision.maps.handmade import ColourMap as ColourMap
from tacit.vision.maps.handmade import GradientMap as GradientMap
from tacit.vision.maps.handmade import TextureMap as TextureMap
from tacit.vision.maps.network import CalledMap as CalledMap
from tacit.vision.maps.network import NetworkMap as NetworkMap
from tacit.vision.maps.stack import MapStack as MapStack
from tacit.vision.maps.stack import handmade_maps as handmade_maps
from tacit.vision.maps.words import WordMap as WordMap
