"""Learners: which objective to minimise. One file per method; all are scikit-learn estimators."""

from tacit.learners.dissimilarity_svm import DissimilaritySVM
from tacit.learners.group_norm_svm import GroupNormSVM
from tacit.learners.hidden_crf import HiddenCRF
from tacit.learners.iterative_latent_svm import IterativeLatentSVM
from tacit.learners.latent_perceptron import LatentPerceptron
from tacit.learners.latent_svm import LatentSVM
from tacit.learners.min_entropy_svm import MinEntropySVM
from tacit.learners.structured_svm import StructuredSVM

__all__ = [
    "DissimilaritySVM",
    "GroupNormSVM",
    "HiddenCRF",
    "IterativeLatentSVM",
    "LatentPerceptron",
    "LatentSVM",
    "MinEntropySVM",
    "StructuredSVM",
]
