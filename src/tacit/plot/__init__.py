"""Pictures of what was learned and how. Needs matplotlib: ``pip install "tacit[plot]"``.

Every function draws on axes that are given or makes its own, and returns them; the numbers behind a picture come from
a function of their own.
"""

from tacit.plot.automata import automaton_graph, hankel_heat, singular_values
from tacit.plot.canvas import pyplot
from tacit.plot.certificates import convergence, gap
from tacit.plot.descents import descent
from tacit.plot.hidden_states import group_norms, norms_by_label, pixel_chances, states_path, window_chances
from tacit.plot.motifs import found_letters, found_motifs, hamming, hamming_distances, letter_heights, logo
from tacit.plot.retrieval import class_weights, hidden_classes, precision_recall, retrieval_sheet
from tacit.plot.uncertainty import (
    entropies_and_losses,
    entropy_and_loss,
    order_curve,
    places_in_images,
    places_in_sequences,
)
from tacit.plot.weight_images import images
from tacit.plot.windows_and_turns import box_statistics, found_windows, mean_images, predicted_boxes, turned_images

__all__ = [
    "automaton_graph",
    "box_statistics",
    "class_weights",
    "convergence",
    "descent",
    "entropies_and_losses",
    "entropy_and_loss",
    "found_letters",
    "found_motifs",
    "found_windows",
    "gap",
    "group_norms",
    "hamming",
    "hamming_distances",
    "hankel_heat",
    "hidden_classes",
    "images",
    "letter_heights",
    "logo",
    "mean_images",
    "norms_by_label",
    "order_curve",
    "pixel_chances",
    "places_in_images",
    "places_in_sequences",
    "precision_recall",
    "predicted_boxes",
    "pyplot",
    "retrieval_sheet",
    "singular_values",
    "states_path",
    "turned_images",
    "window_chances",
]
