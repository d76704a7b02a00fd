from tacit.ranking import measures as measures
from tacit.ranking.convex_rankers import GlobalRanker as GlobalRanker
from tacit.ranking.convex_rankers import TransductiveRanker as TransductiveRanker
from tacit.ranking.mixture import MixtureStep as MixtureStep
from tacit.ranking.mixture_ranker import MixtureRanker as MixtureRanker
from tacit.ranking.relevances import Relevances as Relevances
from tacit.ranking.triplets import JudgedRows as JudgedRows
from tacit.ranking.triplets import Triplets as Triplets
