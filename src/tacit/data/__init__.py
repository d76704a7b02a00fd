"""Containers and checks: bags and sequences, samples in files, labels, parameters, compiled loops."""
