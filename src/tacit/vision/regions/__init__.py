"""Segmentation by labels of image regions (superpixels) in a conditional random field; inference by minimum cuts."""
