from tacit.learners.dissimilarity_svm import DissimilaritySVM as DissimilaritySVM
from tacit.learners.group_norm_svm import GroupNormSVM as GroupNormSVM
from tacit.learners.hidden_crf import HiddenCRF as HiddenCRF
from tacit.learners.iterative_latent_svm import IterativeLatentSVM as IterativeLatentSVM
from tacit.learners.latent_perceptron import LatentPerceptron as LatentPerceptron
from tacit.learners.latent_svm import LatentSVM as LatentSVM
from tacit.learners.min_entropy_svm import MinEntropySVM as MinEntropySVM
from tacit.learners.structured_svm import StructuredSVM as StructuredSVM
