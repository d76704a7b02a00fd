"""Ratios against peers and bounds. ``make bench`` runs every module here that has a `run` function."""
