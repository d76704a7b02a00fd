"""Samples in shards on disk, for data that outgrow memory."""

from tacit.shards.collection import Shards
from tacit.shards.table import ShardedTable

__all__ = ["ShardedTable", "Shards"]
