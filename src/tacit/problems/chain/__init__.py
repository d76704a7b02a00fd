"""First-order chains: the problem, its inference, its compiled loops, its dual points, and tags as users write them."""
