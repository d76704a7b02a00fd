"""Applications: files in, answers out. Each is an estimator, and each has a command of `tacit` around it.

An application reads files (`tacit.datasets`), builds a problem, trains a learner, tests what it found on data that was
held out, and says what goes into the report and the exports. The commands in `tacit.commands` only read options and
write files.
"""

from tacit.apps.align import WordAligner
from tacit.apps.application import Application
from tacit.apps.coreference import CoreferenceResolver
from tacit.apps.locator import Locator
from tacit.apps.motif import MotifFinder
from tacit.apps.reasons import ReasonFinder
from tacit.apps.segmenter import Segmenter
from tacit.apps.tagger import Tagger

__all__ = [
    "Application",
    "CoreferenceResolver",
    "Locator",
    "MotifFinder",
    "ReasonFinder",
    "Segmenter",
    "Tagger",
    "WordAligner",
]
