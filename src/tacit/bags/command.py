"""``tacit bags``: labels of bags from a long table, the instances that decide them, and how good they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from markupsafe import Markup, escape

from tacit import commands
from tacit.report import Column, Facts, Figure, Page, Prose, Section, Table, bar_chart, roc_chart

if TYPE_CHECKING:
    from tacit.bags.reading import BagFile
    from tacit.data.arrays import Array
    from tacit.data.ragged import Ragged

EXAMPLES = commands.examples(
    "tacit bags molecules.csv --bag molecule --label active --out bags",
    "tacit bags new.csv --model bags/model.tacit --out new",
)


@click.command(epilog=EXAMPLES)
@click.argument("table", metavar="TABLE", type=commands.INPUT_FILE)
@click.option("--bag", metavar="COLUMN", help="Column that tells bags apart.")
@click.option("--label", metavar="COLUMN", help="Column with the label of the bag, the same in all of its rows.")
@click.option("--ignore", metavar="COLUMN", multiple=True, help="Column that is not a feature; may be repeated.")
@click.option("--background", metavar="LABEL", help="Label of bags without positive instances; the first if not given.")
@commands.choice_option("--rule", ["auto", "witness", "instances", "both"], "Which instances carry the label of a bag.")
@commands.choice_option("--kernel", ["auto", "linear", "rbf"], "Kernel of the models of instances.")
@commands.c_option(None, "of models of instances ")
@commands.model_option("it predicts the bags of TABLE, and nothing is learned.")
@commands.run_options(out="bags")
def bags(run: commands.CommandRun, table: Path, model: Path | None, **options: Any) -> None:
    """Classify bags of instances, and find the instances that decide.

    This is multiple-instance learning.

    TABLE is a CSV file with a header and a row per instance: a column that names the bag, a column with the label of
    the bag, and numbers. It may be gzipped. Bags whose label is empty are not learned from, but are predicted. Writes
    report.html, predictions.csv (label and probabilities of each bag), instances.csv (the score of each instance),
    model.tacit and run.json.
    """
    from tacit.bags.classifier import BagClassifier
    from tacit.bags.reading import read_bag_file

    ignored = tuple(options.pop("ignore"))
    chosen = {name: value for name, value in options.items() if value is not None}
    missing = [name for name in ("bag", "label") if name not in chosen]
    if model is None and missing:
        raise click.UsageError(f"--{missing[0]} must name a column to learn from; or give --model of an earlier run")
    classifier = load_classifier(model) if model is not None else BagClassifier(**chosen, **run.settings)
    run.check_options(classifier)
    with run.writing(table, model) as folder:
        results = None
        if model is not None:
            data = read_bag_file(table, classifier.bag, classifier.label, columns=classifier.columns_)
        else:
            data = read_bag_file(table, classifier.bag, classifier.label, ignored=ignored)
            known = np.array([i for i, own in enumerate(data.labels) if own is not None], dtype=np.int64)
            if not known.size:
                raise ValueError(
                    f"{table} must have rows with a label in --label {classifier.label}, got none; add labels"
                )
            y = np.array([str(data.labels[i]) for i in known])
            run.note(f"{len(known)} bags with a label: learning")
            classifier.fit(data.bags[known], y)
            if classifier.background is None:
                first = f"{classifier.classes_[0]!r}, the first label"
                run.note(f"bags without positive instances are those of {first}; --background names another")
            classifier.columns_ = data.columns
            run.note_status(classifier.status_)
            if run.status == commands.DONE:
                run.note("learning again without held-out bags, to test")
                results = cross_validate(classifier, data.bags[known], y)
            classifier.save(folder.path("model.tacit"))
        found = Found(classifier, data)
        folder.write_text("predictions.csv", found.predictions_csv())
        folder.write_text("instances.csv", found.instances_csv())
        quality = "no bags were held out" if model is not None else "too few bags to hold some out"
        if results:
            quality = "held-out AUC: " + ", ".join(f"{one.name} {one.area:.3f}" for one in results)
        summary = f"labels of {commands.count_noun(len(data.bags), 'bag')}"
        run.write_report(folder, bags_page(found, results), summary, quality)
        scores = {one.name: {"accuracy": one.accuracy, "auc": one.area} for one in results or []}
        run.record(bags=len(data.bags), instances=int(data.bags.offsets[-1]), held_out=scores or None)
    run.finish(summary, quality, f"open {run.out / 'report.html'}; scores are in {run.out / 'instances.csv'}")


def load_classifier(path: Path) -> Any:
    """The model of an earlier run, which knows its columns."""
    from tacit.bags.classifier import BagClassifier

    found = commands.load_model(path, BagClassifier, {})
    if found.per_label_ or not found.columns_ or not isinstance(found.bag, str):
        raise ValueError(f"{path} must be a model of 'tacit bags', got one that Python made; give the model.tacit")
    return found


FOLDS = 5
LEAST_BAGS = 5
"""Bags of every class that a test needs."""


class HeldOut(NamedTuple):
    """Results of one classifier on held-out bags.

    Parameters
    ----------
    name : of the classifier
    accuracy : the share of right labels
    area : under the ROC curve; for several classes the mean of one against the rest
    curve : false and true positive rates, for two classes
    """

    name: str
    accuracy: float
    area: float
    curve: tuple[Array, Array] | None


def cross_validate(model: Any, bags: Ragged, y: Array) -> list[HeldOut] | None:
    """Cross-validate a classifier and the baselines in the same folds; None where a class has fewer than five bags.

    Ctrl-C ends the test, which is None then.
    """
    from sklearn.base import clone
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler
    from sklearn.svm import SVC

    from tacit.bags.features import bag_statistics

    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < LEAST_BAGS:
        return None
    seed = int(model.random_state)
    extremes = FunctionTransformer(partial(bag_statistics, names=("min", "max")))
    forest = RandomForestClassifier(200, random_state=seed)
    rivals = {
        "BagClassifier": clone(model).set_params(bag=None, label=None),
        "min and max + RBF SVC": make_pipeline(extremes, StandardScaler(), SVC()),
        "random forest on statistics": make_pipeline(FunctionTransformer(bag_statistics), forest),
    }
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y))
    found = []
    for name, rival in rivals.items():
        labels = np.empty_like(y)
        scores = np.zeros((len(y), len(classes))[: 1 if len(classes) == 2 else 2])
        for train, test in folds:
            fitted = clone(rival).fit(bags[train], y[train])
            if getattr(getattr(fitted, "status_", None), "value", "") == commands.INTERRUPTED:
                return None
            labels[test] = fitted.predict(bags[test])
            scores[test] = _scores(fitted, bags[test])
        found.append(_measure(name, labels, scores, y, classes))
    return found


def _measure(name: str, labels: Array, scores: Array, y: Array, classes: Array) -> HeldOut:
    from sklearn.metrics import roc_auc_score, roc_curve

    accuracy = float(np.mean(labels == y))
    if len(classes) > 2:
        areas = [roc_auc_score(y == label, scores[:, k]) for k, label in enumerate(classes)]
        return HeldOut(name, accuracy, float(np.mean(areas)), None)
    is_second = y == classes[1]
    x, rate, _ = roc_curve(is_second, scores)
    return HeldOut(name, accuracy, float(roc_auc_score(is_second, scores)), (x, rate))


def _scores(fitted: Any, bags: Ragged) -> Array:
    if hasattr(fitted, "decision_function"):
        return np.asarray(fitted.decision_function(bags))
    found = np.asarray(fitted.predict_proba(bags))
    return found[:, 1] if found.shape[1] == 2 else found


class Found:
    """What a classifier finds in a table: probabilities, labels, scores of instances, witnesses."""

    def __init__(self, classifier: Any, data: BagFile) -> None:
        self.classifier, self.data = classifier, data
        self.probabilities = classifier.predict_proba(data.bags)
        self.labels = classifier.classes_[np.argmax(self.probabilities, axis=1)]
        self.scores = classifier.instance_scores(data.bags)
        self.witnesses = classifier.witnesses(data.bags)

    def best_scores(self, i: int) -> Any:
        """The scores of the instances of a bag for its label; of several classes, those of the predicted one."""
        own = self.scores[i]
        return own if own.ndim == 1 else own[:, int(np.argmax(self.probabilities[i]))]

    def predictions_csv(self) -> str:
        """A row per bag."""
        names = [f"probability of {label}" for label in self.classifier.classes_]
        rows = [["bag", "label", "predicted", *names, "deciding line"]]
        for i, name in enumerate(self.data.names):
            at = int(self.witnesses[i])
            line = "" if at < 0 else str(self.data.lines[self.data.bags.offsets[i] + at])
            known = self.data.labels[i] or ""
            rows.append([name, known, str(self.labels[i]), *(f"{p:.6g}" for p in self.probabilities[i]), line])
        return _csv(rows)

    def instances_csv(self) -> str:
        """A row per instance."""
        table = self.scores.values if self.scores.values.ndim == 2 else self.scores.values[:, None]
        columns = ["score"] if table.shape[1] == 1 else [f"score of {label}" for label in self.classifier.classes_]
        rows = [["line", "bag", *columns]]
        for i, name in enumerate(self.data.names):
            own = range(int(self.data.bags.offsets[i]), int(self.data.bags.offsets[i + 1]))
            rows += [[str(self.data.lines[row]), name, *(f"{value:.6g}" for value in table[row])] for row in own]
        return _csv(rows)


def _csv(rows: Sequence[Sequence[str]]) -> str:
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


SHOWN_BAGS, MAX_INSTANCES, MAX_TABLE_ROWS = 24, 200, 500
"""Bags in the picture, instances of each, and rows of the table."""


def bags_page(found: Found, results: list[HeldOut] | None) -> Page:
    """The whole page."""
    classifier, data = found.classifier, found.data
    interrupted = classifier.status_.value == commands.INTERRUPTED
    banner = "Interrupted: some models were not fitted." if interrupted else ""
    facts: list[tuple[str, Any]] = [
        ("bags", len(data.bags)),
        ("with a label", sum(label is not None for label in data.labels)),
        ("instances", int(data.bags.offsets[-1])),
        ("features", len(data.columns)),
        ("background", f"{classifier.classes_[classifier._background]} (bags without positive instances)"),
        ("model of instances", f"rule {classifier.witness_.rule}, kernel {classifier.witness_.kernel}"),
    ]
    blocks: list[Any] = [Facts(facts)]
    if results:
        rows = [(one.name, one.accuracy, one.area) for one in results]
        caption = "Five folds; settings and weights were chosen in each of them, without the held-out bags."
        blocks.append(Table([Column("classifier"), Column("accuracy", True), Column("AUC", True)], rows, caption))
        curves = {one.name: one.curve for one in results if one.curve is not None}
        if curves:
            blocks.append(Figure(roc_chart(curves), "ROC curves of held-out bags."))
        accuracies = [one.accuracy for one in results]
        if accuracies[0] < max(accuracies):
            blocks.append(Prose("A baseline has a higher accuracy here; the difference may be chance."))
    else:
        blocks.append(Prose("No bags were held out: how good the predictions are is unknown."))
    weights = classifier.weights_
    combined = bar_chart(list(weights), list(weights.values()), "weight", title="weights of the models")
    shown = np.unique(np.linspace(0, len(data.bags) - 1, SHOWN_BAGS).astype(int))
    caption = "A dot per instance, larger for the one that decides; right of the line it speaks against the background."
    return Page(
        "Bags",
        f"{len(data.bags)} bags, labels {', '.join(map(str, classifier.classes_))}",
        banner,
        [
            Section("How good it is", blocks),
            Section("Instances that decide", [Figure(witness_svg(found, shown.tolist()), caption)]),
            Section("All bags", [_table(found)]),
            Section("What was combined", [Figure(combined, "Weights of the models of instances and of whole bags.")]),
        ],
    )


def witness_svg(found: Found, shown: Sequence[int]) -> Markup:
    """A line per bag with a dot per instance at its score; the deciding instance is larger and orange."""
    scores = {i: np.asarray(found.best_scores(i))[:MAX_INSTANCES] for i in shown}
    every = np.concatenate([*scores.values(), [0.0]])
    low, high = float(every.min()), float(every.max())
    left, width, height = 200, 440, 18
    scale = width / max(high - low, 1e-12)
    zero = left - low * scale
    tall = height * (len(shown) + 1)
    title = f"scores of the instances of {len(shown)} bags"
    parts = [
        f'<svg viewBox="0 0 660 {tall}" role="img" aria-label="{title}"><title>{title}</title>'
        f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="4" y2="{tall - 8}" stroke="currentColor" stroke-opacity=".3"/>'
    ]
    for row, i in enumerate(shown):
        y = height * (row + 1)
        name = f"{found.data.names[i]}: {found.labels[i]}"
        name = name if len(name) <= 30 else name[:29] + "…"
        parts.append(f'<text x="4" y="{y + 4}" font-size="12" fill="currentColor">{escape(name)}</text>')
        for at, score in enumerate(scores[i].tolist()):
            decides = at == found.witnesses[i]
            look = 'r="5" fill="#d55e00"' if decides else 'r="3" fill="#0072b2" fill-opacity=".45"'
            line = found.data.lines[found.data.bags.offsets[i] + at]
            parts.append(
                f'<circle cx="{left + (score - low) * scale:.1f}" cy="{y}" {look}>'
                f"<title>line {line}: {score:.3g}</title></circle>"
            )
    return Markup("".join(parts) + "</svg>")


def _table(found: Found) -> Table:
    data, rows = found.data, []
    for i in range(min(len(data.bags), MAX_TABLE_ROWS)):
        at = int(found.witnesses[i])
        line = None if at < 0 else data.lines[data.bags.offsets[i] + at]
        top = float(found.probabilities[i].max())
        rows.append((data.names[i], data.labels[i] or "", str(found.labels[i]), top, int(data.bags.lengths[i]), line))
    columns = [
        Column("bag"),
        Column("label"),
        Column("predicted"),
        Column("probability", True),
        Column("instances", True),
        Column("deciding line", True),
    ]
    caption = "" if len(rows) == len(data.bags) else f"The first {len(rows)} bags; all are in predictions.csv."
    return Table(columns, rows, caption)
