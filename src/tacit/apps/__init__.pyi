from tacit.dna.finder.finder import MotifFinder as MotifFinder
from tacit.learners.application import Application as Application
from tacit.text.alignment.aligner import WordAligner as WordAligner
from tacit.text.coreference.resolver import CoreferenceResolver as CoreferenceResolver
from tacit.text.sentences.finder import ReasonFinder as ReasonFinder
from tacit.text.tagger import Tagger as Tagger
from tacit.vision.locator import Locator as Locator
from tacit.vision.segmenter import Segmenter as Segmenter
