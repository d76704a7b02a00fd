"""Labels of image regions, neighbours preferring the same one: minimum cuts as inference."""

from tacit.problems.regions.labels import RegionLabels
from tacit.problems.regions.problem import Regions

__all__ = ["RegionLabels", "Regions"]
