"""Labels of image regions, neighbours preferring the same one: minimum cuts as inference."""
