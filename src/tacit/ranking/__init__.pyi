from tacit.ranking import measures as measures
from tacit.ranking.global_ranker import GlobalRanker as GlobalRanker
from tacit.ranking.mixture import MixtureStep as MixtureStep
from tacit.ranking.mixture_ranker import MixtureRanker as MixtureRanker
from tacit.ranking.relevances import Relevances as Relevances
from tacit.ranking.transductive_ranker import TransductiveRanker as TransductiveRanker
from tacit.ranking.triplets import JudgedRows as JudgedRows
from tacit.ranking.triplets import Triplets as Triplets
