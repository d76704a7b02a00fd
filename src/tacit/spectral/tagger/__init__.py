"""Automata over pairs of sequences."""
