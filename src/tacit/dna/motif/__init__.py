"""DNA motifs: the problems, their inference, and their compiled loops."""
