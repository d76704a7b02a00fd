"""Problems: what F(x, y, h) = w·Ψ(x, y, h) looks like and how to maximise it. One file a problem."""

from tacit.problems.alignment import Alignment
from tacit.problems.candidates import Candidates
from tacit.problems.chain import Chain
from tacit.problems.coreference import Coreference
from tacit.problems.detection import Detection
from tacit.problems.motif import Motif
from tacit.problems.multiclass import Multiclass
from tacit.problems.per_sample import PerSample
from tacit.problems.regions import Regions
from tacit.problems.rotations import rotations
from tacit.problems.sentences import Sentences
from tacit.problems.transforms import Transforms

__all__ = [
    "Alignment",
    "Candidates",
    "Chain",
    "Coreference",
    "Detection",
    "Motif",
    "Multiclass",
    "PerSample",
    "Regions",
    "Sentences",
    "Transforms",
    "rotations",
]
