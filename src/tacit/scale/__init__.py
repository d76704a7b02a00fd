"""The same oracle, in shards of rows."""

from tacit.scale.threads import Threaded, sharded

__all__ = ["Threaded", "sharded"]
