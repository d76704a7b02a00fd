"""Bags of instances: `tacit.BagClassifier`, the models that it combines, and ``tacit bags``."""
