"""One label per sequence over a hidden chain of states: the problem, its inference, and what it packs."""
