"""Mentions of a text and the pairs that may refer to the same thing."""
