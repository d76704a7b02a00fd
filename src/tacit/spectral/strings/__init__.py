"""Strings as counts: symbols, prefix trees, Hankel matrices, n-grams."""
