"""Long runs: the one loop of everything iterative, why it stopped, and progress on a terminal."""

from tacit.running.interruption import InterruptedFitError
from tacit.running.loop import Process, run
from tacit.running.progress import Progress
from tacit.running.status import Status

__all__ = ["InterruptedFitError", "Process", "Progress", "Status", "run"]
