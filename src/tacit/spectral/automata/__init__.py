"""Weighted automata and how they are learned."""
