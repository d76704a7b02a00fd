"""Phrase-structure parsing with hidden sub-categories."""
