"""First-order chains: the problem, its inference, its compiled loops, its dual points, and tags as users write them."""

from tacit.problems.chain.problem import Chain

__all__ = ["Chain"]
