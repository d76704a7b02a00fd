"""Labels of image regions, neighbours preferring the same one: minimum cuts as inference."""

from tacit.vision.regions.labels import RegionLabels
from tacit.vision.regions.problem import Regions

__all__ = ["RegionLabels", "Regions"]
