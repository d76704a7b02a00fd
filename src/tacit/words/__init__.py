"""Words as features: templates that turn sentences into sparse tables, for chains and other problems."""

from tacit.words.features import WordFeatures

__all__ = ["WordFeatures"]
