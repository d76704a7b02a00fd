"""The same oracle, in shards of rows."""

from tacit.scale.processes import Processes
from tacit.scale.threads import Threaded, sharded

__all__ = ["Processes", "Threaded", "sharded"]
