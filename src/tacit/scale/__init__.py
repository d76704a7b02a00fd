"""The same oracle in parallel: its rows in blocks that threads or processes share."""

from tacit.scale.processes import Processes
from tacit.scale.sharding import Batch
from tacit.scale.threads import Threaded, sharded

__all__ = ["Batch", "Processes", "Threaded", "sharded"]
