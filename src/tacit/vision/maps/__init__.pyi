from tacit.vision.maps.handmade import ColourMap as ColourMap
from tacit.vision.maps.handmade import GradientMap as GradientMap
from tacit.vision.maps.handmade import MapStack as MapStack
from tacit.vision.maps.handmade import TextureMap as TextureMap
from tacit.vision.maps.handmade import WordMap as WordMap
from tacit.vision.maps.handmade import handmade_maps as handmade_maps
from tacit.vision.maps.network import CalledMap as CalledMap
from tacit.vision.maps.network import NetworkMap as NetworkMap
