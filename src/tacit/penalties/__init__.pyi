from tacit.oracle.task import Penalty as Penalty
from tacit.penalties.group_norm import GroupNorm as GroupNorm
from tacit.penalties.quadratic import Prior as Prior
from tacit.penalties.quadratic import Quadratic as Quadratic
from tacit.penalties.quadratic import without_bounds as without_bounds
