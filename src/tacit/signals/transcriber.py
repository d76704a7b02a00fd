"""`Transcriber`: recordings and what is said in them, without times, to transcripts and times of words."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.parameters import has_length, is_positive, number, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import estimator, instance, parameter, positive, switch, whole
from tacit.learners import LatentSVM
from tacit.learners.application import Application
from tacit.problems.transcript.edits import align_labels, error_rate
from tacit.problems.transcript.problem import Transcript
from tacit.signals.files import Word
from tacit.signals.frames import cut_frames

WINDOW = 0.025
"""Seconds of a frame."""

FOLDS = 3
"""Folds of recordings on which transcripts are tested."""

WARPS = (0.85, 1.15)
"""Factors of the frequencies of copies that stand for other voices (Jaitly & Hinton 2013)."""

MIN_TESTED = 6
"""The fewest recordings with a transcript of which some are held out."""


class HeldOut(NamedTuple):
    """What held-out recordings show: the word error rate of the model, that of the most frequent transcript for all,
    and pairs (true, found) of words, "" for none."""

    error_rate: float
    usual_error_rate: float
    n_words: int
    pairs: list[tuple[str, str]]


@estimator
class Transcriber(Application):
    """Learn words from recordings and their transcripts, whose times are not known; then transcribe and align others.

    Frames are mel cepstra with slopes and squares. Every word has states from left to right, silence may be anywhere,
    and `tacit.LatentSVM` learns them with the edit distance as its loss (`tacit.problems.Transcript`).

    Parameters
    ----------
    states : states per word; a word lasts at least half as many frames
    step : seconds from one frame to the next, the precision of times
    C : factor of the loss
    max_iter : rounds of alignment and learning
    new_voices : whether to learn from copies with frequencies times 0.85 and 1.15 as well, for speakers who are not in
        the training data. It takes about four times as long
    random_state, n_jobs, verbose : as in `tacit.LatentSVM`

    Attributes
    ----------
    model_ : the fitted `tacit.LatentSVM`
    rate_ : samples per second of the recordings
    status_ : whether the fit was interrupted

    >>> rate, rng = 8000, np.random.default_rng(0)
    >>> tones = {"low": 300, "high": 1500}
    >>> def speak(words):
    ...     quiet = 0.001 * rng.standard_normal(1600)
    ...     parts = [np.r_[np.sin(2 * np.pi * tones[word] * np.arange(2400) / rate), quiet] for word in words]
    ...     return np.concatenate([quiet, *parts]) + 0.001 * rng.standard_normal(1600 + 4000 * len(words))
    >>> y = [["low", "high"], ["high"], ["low", "low"], ["high", "low"]] * 2
    >>> app = Transcriber(states=2, verbose=0).fit([speak(words) for words in y], y, rate)
    >>> [word.name for word in app.transcribe([speak(["high", "low"])], rate)[0]]
    ['high', 'low']
    """

    states: int = parameter(whole(1, 64), default=8)
    step: float = parameter(positive, default=0.02)
    C: float = parameter(positive, default=1000.0)
    max_iter: int = parameter(whole(1), default=15)
    new_voices: bool = parameter(switch, default=False)
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: int = 1
    learned: ClassVar = {
        "model_": instance(LatentSVM, "a fitted LatentSVM", problem=Transcript),
        "rate_": positive,
    }

    def fit(self, signals: Any, transcripts: Any, rate: float, groups: Any = None) -> Transcriber:
        """Learn from recordings.

        Parameters
        ----------
        signals : recordings, each a vector of numbers
        transcripts : the words of every recording, in order
        rate : samples per second, the same for all
        groups : the speaker of every recording: features are normalised over all recordings of one. Without it, every
            recording is normalised by itself
        """
        self.check_parameters()
        copies = self._copies(signals, rate, groups)
        is_repeated = len(copies) > 1 and has_length(transcripts)
        y = [*transcripts] * len(copies) if is_repeated else transcripts
        self.model_ = self._learner().fit(Ragged.concatenate(copies), y)
        self.rate_ = float(rate)
        self.status_ = self.model_.status_
        return self

    def transcribe(self, signals: Any, rate: float, groups: Any = None) -> list[list[Word]]:
        """The words of recordings, with their times."""
        X = self._read(signals, rate, groups)
        return self._words(self.model_.predict_hidden(X))

    def align(self, signals: Any, transcripts: Any, rate: float, groups: Any = None) -> list[list[Word]]:
        """The times of words that are known (forced alignment)."""
        return self._words(self.model_.impute(self._read(signals, rate, groups), transcripts))

    def evaluate(self, signals: Any, transcripts: Any, rate: float, groups: Any = None) -> HeldOut | None:
        """Learn without some recordings and transcribe them, fold by fold; None with fewer than six recordings.

        Words that the other folds lack count as errors.
        """
        self.check_parameters()
        n = len(transcripts)
        if n < MIN_TESTED:
            return None
        copies, seed = self._copies(signals, rate, groups), self.random_state
        fold = np.random.default_rng(0 if seed is None else seed).permutation(n) % FOLDS
        true: list[list[str]] = []
        found: list[list[str]] = []
        for held in range(FOLDS):
            train, test = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
            if len({word for i in train for word in transcripts[i]}) < 2:
                return None
            X = Ragged.concatenate([copy[train] for copy in copies])
            model = self._learner().fit(X, [transcripts[i] for i in train] * len(copies))
            true += [list(transcripts[i]) for i in test]
            found += [labels.tolist() for labels in model.predict(copies[0][test])]
        pairs = [pair for a, b in zip(true, found, strict=True) for pair in align_labels(a, b)]
        usual = list(Counter(map(tuple, true)).most_common(1)[0][0])
        rates = error_rate(true, found), error_rate(true, [usual] * len(true))
        return HeldOut(*rates, sum(map(len, true)), pairs)

    def _learner(self) -> LatentSVM:
        return LatentSVM(
            Transcript(states=self.states, skips=1),
            C=float(self.C),
            tol=1e-3,
            max_iter=self.max_iter,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _copies(self, signals: Any, rate: float, groups: Any) -> list[Ragged]:
        """The frames to learn from: first the recordings as they are, then those with other frequencies."""
        return [self._cut(signals, rate, groups, warp) for warp in (1.0, *WARPS * bool(self.new_voices))]

    def _cut(self, signals: Any, rate: float, groups: Any, warp: float = 1.0) -> Ragged:
        options: dict[str, Any] = {"window": WINDOW, "step": float(self.step), "squares": True, "warp": warp}
        return cut_frames(signals, rate, normalise="speech", groups=groups, **options)

    def _read(self, signals: Any, rate: float, groups: Any) -> Ragged:
        check_is_fitted(self)
        if number("rate", rate, "a number above 0", is_positive) != self.rate_:
            raise ValueError(
                f"the recordings have {shorten(rate)} samples per second, but the model learned from {self.rate_:g}; "
                "resample them"
            )
        return self._cut(signals, rate, groups)

    def _words(self, paths: Ragged) -> list[list[Word]]:
        """Runs of states as words; a boundary is in the middle between two frames."""
        found = []
        names = self.model_.classes_
        for path in paths:
            own: list[Word] = []
            for label, first, last in cut_path(np.asarray(path), self.states):
                if label < len(names):
                    start, stop = (t * float(self.step) + (WINDOW - float(self.step)) / 2 for t in (first, last))
                    own.append(Word(str(names[label]), max(0.0, start), stop))
            found.append(own)
        return found


def cut_path(path: Array, states: int) -> list[tuple[int, int, int]]:
    """The segments of a path of states: label, first frame, and the frame behind the last.

    >>> cut_path(np.array([4, 0, 1, 1, 0, 1]), 2)
    [(2, 0, 1), (0, 1, 4), (0, 4, 6)]
    """
    label, place = np.divmod(path, states)
    begins = np.r_[True, (label[1:] != label[:-1]) | (place[1:] < place[:-1])]
    cuts = np.append(np.flatnonzero(begins), path.size).tolist()
    return [(int(label[a]), a, b) for a, b in itertools.pairwise(cuts)]
