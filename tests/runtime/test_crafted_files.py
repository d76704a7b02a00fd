"""Files that were damaged, or made by hand and sealed anew: one clear error, whatever they hold.

The checksum of a file has no key, so whoever can write it can seal it. Without the checks some of these files end in a
crash, in numbers from foreign memory, or in predictions that mean nothing.
"""

import io
import json
import os
import struct
import zipfile

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import tacit
from tacit import IterativeLatentSVM, LatentSVM, Ragged, StructuredSVM
from tacit.datasets import planted_motif
from tacit.problems import Candidates, Chain, Motif, Multiclass, Transforms, rotations
from tacit.ranking import MixtureRanker, TransductiveRanker
from tacit.runtime.archive import HEADER, StorageError, _checksum, kind_of, read_archive, write_archive
from tacit.solvers import Bundle, FrankWolfe, Subgradient
from tacit.spectral import SpectralAutomaton, SpectralHMM, SpectralTagger, WeightedAutomaton
from tacit.text.symbols import RareWords

X, Y = load_iris(return_X_y=True)
WORDS = [list("ab") * k + ["c"] for k in (0, 1, 1, 2, 2, 2, 3)] * 20
BAGS = Ragged(X, np.arange(51) * 3).with_boxes(np.tile([[0, 0, 2, 2], [1, 0, 3, 2], [5, 5, 6, 6]], (50, 1)))
LABELS = np.arange(50) % 2


def fitted(kind):
    """A small model of each kind that can be saved."""
    return {
        "Multiclass": lambda: StructuredSVM(Multiclass(), C=1).fit(X, Y),
        "Candidates": lambda: LatentSVM(Candidates(), C=1, n_init=2).fit(BAGS, LABELS),
        "overlap": lambda: IterativeLatentSVM(Candidates(loss="overlap"), C=1).fit(BAGS, LABELS),
        "Motif": lambda: LatentSVM(Motif(4, background=2), C=1).fit(*planted_motif(30, 20, "ACGT")[:2]),
        "Chain": lambda: StructuredSVM(Chain(boundaries=True), C=1).fit(X.reshape(50, 3, 4), Y.reshape(50, 3)),
        "Transforms": lambda: LatentSVM(Transforms(rotations(-9, 9, 3), n_components=4), C=1).fit(
            X[:, [0, 1, 2, 3]].reshape(-1, 2, 2), Y
        ),
        "SpectralAutomaton": lambda: SpectralAutomaton([2, 3], refine="em").fit(WORDS),
        "ngram": lambda: SpectralAutomaton(2).fit(WORDS),
        "SpectralHMM": lambda: SpectralHMM(2).fit(WORDS),
        "MixtureRanker": lambda: MixtureRanker(2, n_init=1).fit(X, Y, group=[75, 75]),
        "TransductiveRanker": lambda: TransductiveRanker(n_neighbors=1).fit(X, Y, group=[75, 75]),
        "WeightedAutomaton": lambda: WeightedAutomaton([1.0], [[[0.3]], [[0.5]]], [0.2], symbols=["a", "b"]),
    }[kind]()


KINDS = (
    "Multiclass",
    "Candidates",
    "overlap",
    "Motif",
    "Chain",
    "Transforms",
    "SpectralAutomaton",
    "ngram",
    "SpectralHMM",
    "MixtureRanker",
    "TransductiveRanker",
    "WeightedAutomaton",
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Header and arrays of a file of each kind."""
    folder = tmp_path_factory.mktemp("models")
    parts = {}
    for kind in KINDS:
        fitted(kind).save(folder / kind)
        parts[kind] = read_archive(folder / kind, "model")
    return parts


def seal(path, header, arrays, kind="model"):
    """Write a file with a right checksum, whatever is in it."""
    write_archive(path, kind, {k: v for k, v in header.items() if k not in ("format", "kind", "tacit")}, arrays)
    return path


def at(tree, place):
    """The dict that holds the last name of a place in a header."""
    for name in place[:-1]:
        tree = tree[name]
    return tree


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_sealed_as_it_was_comes_back(saved, kind, tmp_path):
    header, arrays = saved[kind]
    model = tacit.load(seal(tmp_path / "model", header, arrays))
    assert type(model) is type(fitted(kind))


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("Multiclass", "fact.coef_", lambda w: w * np.nan),
        ("Multiclass", "fact.coef_", lambda w: np.append(w, 0.0)),
        ("Multiclass", "fact.coef_", lambda w: w[:-1]),
        ("Multiclass", "fact.coef_", lambda w: w[:0]),
        ("Multiclass", "fact.coef_", lambda w: w.reshape(3, 5)),
        ("Multiclass", "fact.coef_", lambda w: w.astype(np.float32)),
        ("Multiclass", "fact.coef_", lambda w: w.astype(int)),
        ("Multiclass", "fact.coef_", lambda w: w.astype(str)),
        ("Multiclass", "fact.coef_", lambda w: np.array(1.0)),
        ("Multiclass", "fact.schema_.classes", lambda c: c[:2]),
        ("Multiclass", "fact.schema_.classes", lambda c: np.append(c, 7)),
        ("Multiclass", "fact.schema_.classes", lambda c: c * 0),
        ("Multiclass", "fact.schema_.classes", lambda c: np.array([0.0, np.nan, 1.0])),
        ("Motif", "fact.schema_.classes", lambda c: np.append(c, 7)),
        ("Chain", "fact.coef_", lambda w: np.where(w == w, np.inf, w)),
        ("Chain", "fact.schema_.classes", lambda c: np.append(c, 7)),
        ("Transforms", "fact.schema_.facts.shape", lambda s: s * 1000),
        ("Transforms", "fact.schema_.facts.shape", lambda s: s * 1.0),
        ("Transforms", "fact.schema_.facts.states", lambda s: s[:1]),
        ("Transforms", "fact.schema_.facts.components", lambda c: c[:, :1]),
        ("Transforms", "fact.schema_.facts.components", lambda c: c * np.nan),
        ("Transforms", "fact.schema_.facts.mean", lambda m: m[:0]),
        ("MixtureRanker", "fact.gate_", lambda w: w[:, :-1]),
        ("MixtureRanker", "fact.class_weights_", lambda z: z * np.nan),
        ("MixtureRanker", "fact.query_mean_", lambda m: m[:0]),
        ("TransductiveRanker", "fact.training_.triplets.offsets", lambda o: o * 1000),
        ("TransductiveRanker", "fact.training_.triplets.offsets", lambda o: o[::-1].copy()),
        ("TransductiveRanker", "fact.training_.triplets.grades", lambda g: g + 1_000_000),
        ("TransductiveRanker", "fact.training_.triplets.grades", lambda g: g - 1),
        ("TransductiveRanker", "fact.training_.triplets.items", lambda i: i[:-1]),
        ("TransductiveRanker", "fact.training_.features", lambda f: f[:10]),
        ("ngram", "fact.symbols_", lambda s: np.arange(3_000_000)),
        ("ngram", "fact.symbols_", lambda s: s[:1]),
        ("ngram", "fact.distribution_.automata.0.transitions", lambda t: t[:0]),
        ("ngram", "fact.distribution_.automata.0.transitions", lambda t: t * np.inf),
        ("ngram", "fact.distribution_.automata.0.fresh", lambda f: f[:-1]),
        ("ngram", "fact.distribution_.automata.0.initial", lambda i: np.append(i, 1.0)),
        ("ngram", "fact.distribution_.ngram.chance", lambda c: -c),
        ("ngram", "fact.distribution_.ngram.suffix", lambda s: s + 1),
        ("ngram", "fact.distribution_.ngram.first", lambda f: f[:-1]),
        ("ngram", "fact.distribution_.ngram.symbol", lambda s: s + 2**20),
        ("ngram", "fact.distribution_.weights", lambda w: w[:, :-1]),
        ("ngram", "fact.distribution_.weights", lambda w: w * 2),
        ("ngram", "fact.automaton_.transitions", lambda t: t[:0]),
        ("ngram", "fact.automaton_.symbols", lambda s: s[::-1]),
        ("SpectralHMM", "fact.automaton_.initial", lambda i: 2 * i),
        ("SpectralHMM", "fact.emissionprob_", lambda e: e * 2),
        ("SpectralHMM", "fact.transmat_", lambda t: t[:1]),
        ("SpectralHMM", "fact.symbols_", lambda s: np.append(s, "z")),
        ("WeightedAutomaton", "param.transitions", lambda t: t[:0]),
        ("WeightedAutomaton", "param.transitions", lambda t: t * np.nan),
        ("WeightedAutomaton", "param.symbols", lambda s: np.array(["a", "a"])),
    ],
)
def test_arrays_that_no_model_has_are_refused(saved, kind, name, change, tmp_path):
    header, arrays = saved[kind]
    path = seal(tmp_path / "model", header, {**arrays, name: change(arrays[name])})
    with pytest.raises(StorageError, match="tacit model"):
        tacit.load(path)


def test_the_number_that_is_not_finite_is_named(saved, tmp_path):
    header, arrays = saved["Multiclass"]
    coef = arrays["fact.coef_"].copy()
    coef[3] = np.nan
    with pytest.raises(StorageError, match=rf"coef_\[3\] is nan; all {coef.size} .* get the file again"):
        tacit.load(seal(tmp_path / "model", header, {**arrays, "fact.coef_": coef}))
    model = fitted("Multiclass")
    model.coef_[3] = np.inf
    with pytest.raises(ValueError, match=r"coef_\[3\] is inf"):
        model.save(tmp_path / "other")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_lacks_an_array_or_a_fact_is_refused(saved, kind, tmp_path):
    header, arrays = saved[kind]
    for name in arrays:
        kept = {k: v for k, v in arrays.items() if k != name}
        with pytest.raises(StorageError, match="malformed"):
            tacit.load(seal(tmp_path / "model", header, kept))
    for part in ("facts", "params"):
        needed = [n for n in header[part] if n not in ("feature_names_in_", "runs_", "solver_", "spectral_")]
        for name in needed if part == "facts" else [n for n in needed if n in ("problem", "transitions")]:
            less = {**header, part: {k: v for k, v in header[part].items() if k != name}}
            with pytest.raises(StorageError, match="tacit model"):
                tacit.load(seal(tmp_path / "model", less, arrays))


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("Multiclass", ("facts", "objective_"), float("nan")),
        ("Multiclass", ("facts", "bound_"), "low"),
        ("Multiclass", ("facts", "bound_"), float("inf")),
        ("Multiclass", ("facts", "n_features_in_"), 10**30),
        ("Multiclass", ("facts", "n_iter_"), -1),
        ("Multiclass", ("facts", "status_"), "CONVERGED"),
        ("Multiclass", ("facts", "status_", "$status"), "GOOD"),
        ("Multiclass", ("facts", "history_"), [1, 2]),
        ("Multiclass", ("facts", "predict"), 3),
        ("Multiclass", ("facts", "__class__"), 3),
        ("Multiclass", ("facts", "fit_predict_"), {"$object": "Popen", "parts": {}}),
        ("Multiclass", ("facts", "schema_", "parts", "n_features"), 2**40),
        ("Multiclass", ("facts", "schema_", "parts", "blocks"), {"$dict": {"weights": {"$tuple": [3, 10**12]}}}),
        ("Multiclass", ("facts", "schema_", "parts", "blocks"), {"$dict": {"weights": 15}}),
        ("Multiclass", ("facts", "schema_"), None),
        ("Multiclass", ("params", "C"), -1.0),
        ("Multiclass", ("params", "n_jobs"), "all"),
        ("Multiclass", ("params", "nothing"), 1),
        ("Multiclass", ("params", "problem"), {"$object": "Solver", "parts": {}}),
        ("Multiclass", ("params", "problem"), {"$object": "PerSample", "parts": {"joint_feature": None}}),
        ("Multiclass", ("params", "problem", "parts", "fit_intercept"), "perhaps"),
        ("Multiclass", ("params", "problem", "parts", "loss"), "1/0"),
        ("Multiclass", ("learner",), "LatentSVM"),
        ("Multiclass", ("learner",), ["StructuredSVM"]),
        ("Multiclass", ("facts",), []),
        ("Motif", ("params", "problem", "parts", "background"), 8),
        ("Motif", ("params", "problem", "parts", "width"), 10**9),
        ("Motif", ("params", "pace"), {"$object": "SelfPaced", "parts": {"mu": 0.5}}),
        ("Candidates", ("facts", "runs_"), [None]),
        ("Candidates", ("params", "solver"), {"$object": "FrankWolfe", "parts": {"cache": -3}}),
        ("Transforms", ("params", "problem", "parts", "transforms", "parts", "angles"), {"$tuple": []}),
        ("SpectralHMM", ("facts", "empty_"), 2.0),
        ("ngram", ("facts", "distribution_"), None),
        ("ngram", ("facts", "distribution_", "parts", "ngram", "parts", "n_symbols"), 1e400),
        ("WeightedAutomaton", ("params", "statistics"), "word"),
    ],
)
def test_headers_that_no_model_has_are_refused(saved, kind, place, value, tmp_path):
    header, arrays = saved[kind]
    changed = json.loads(json.dumps(header))
    at(changed, place)[place[-1]] = value
    with pytest.raises(StorageError, match=r"tacit model|learner"):
        tacit.load(seal(tmp_path / "model", changed, arrays))


def test_a_format_that_is_no_number_is_refused(tmp_path):
    for text in ('"format": 1e400', '"format": "one"', '"format": null', '"format": -1e400', '"form": 1'):
        path = tmp_path / "model"
        write_archive(path, "model", {}, {})
        resealed(path, lambda old, text=text: old.replace('"format": 1', text))
        with pytest.raises(StorageError, match=r"malformed|tacit file"):
            tacit.load(path)


def resealed(path, change):
    """Change the header's text, and its checksum with it."""
    with zipfile.ZipFile(path) as archive:
        blobs = {name: archive.read(name) for name in archive.namelist()}
    text = change(json.loads(blobs.pop(HEADER))["text"])
    envelope = {"checksum": _checksum(text, blobs.items()), "text": text}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(HEADER, json.dumps(envelope))
        for name, blob in blobs.items():
            archive.writestr(name, blob)


def with_array(path, blob):
    """A sealed file with one array of these bytes."""
    text = json.dumps({"format": 1, "kind": "model", "tacit": "0"})
    blobs = {"a.npy": blob}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(HEADER, json.dumps({"checksum": _checksum(text, blobs.items()), "text": text}))
        archive.writestr("a.npy", blob)
    return path


def npy(header, data=b"", version=(1, 0)):
    text = header.encode() if isinstance(header, str) else header
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\x93NUMPY",
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }", b"12345678"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 0), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }", b"12345678"),
        npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }"),
        npy("{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000000,), }"),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"12345678"),
        npy("{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }", bytes(16)),
        npy("{'descr': '<M8[D]', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        npy("{'descr': ('<f8', (2, 2)), 'fortran_order': False, 'shape': (1,), }", bytes(32)),
        npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", b"\xff\xff\xff\xff"),
        npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", struct.pack("<I", 0xD800)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1"),
        npy("(" * 5000),
        npy("'unclosed"),
        npy("{'shape': (0,)}"),
        npy(b"\xff\xfe\x00"),
        npy("{}", version=(9, 0)),
    ],
)
def test_odd_arrays_are_refused(blob, tmp_path):
    with pytest.raises(StorageError, match="array"):
        tacit.load(with_array(tmp_path / "model", blob))


def test_numbers_in_another_byte_order_are_read(saved, tmp_path):
    header, arrays = saved["Multiclass"]
    path = seal(tmp_path / "model", header, {k: v.astype(v.dtype.newbyteorder(">")) for k, v in arrays.items()})
    np.testing.assert_array_equal(tacit.load(path).predict(X), fitted("Multiclass").predict(X))


def test_parts_that_overlap_are_refused(tmp_path):
    """Many names for the same bytes: a small file would fill the memory."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(HEADER, "{}")
        archive.writestr("0.npy", bytes(100_000))
        for i in range(1, 50):
            twin = zipfile.ZipInfo(f"{i}.npy")
            source = archive.getinfo("0.npy")
            for name in ("CRC", "compress_size", "file_size", "header_offset"):
                setattr(twin, name, getattr(source, name))
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
    (tmp_path / "model").write_bytes(stream.getvalue())
    for read in (tacit.load, lambda path: read_archive(path, "checkpoint")):
        with pytest.raises(StorageError, match="5000002"):
            read(tmp_path / "model")


def test_names_given_twice_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "model", "w") as archive:
        archive.writestr(HEADER, "{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr(HEADER, "{}")
    with pytest.raises(StorageError, match="one name"):
        tacit.load(tmp_path / "model")


def test_a_header_beyond_the_limit_is_neither_read_nor_written(tmp_path, monkeypatch):
    write_archive(tmp_path / "model", "model", {"learner": "x" * 5000}, {})
    monkeypatch.setattr("tacit.runtime.archive.MAX_HEADER", 4000)
    with pytest.raises(StorageError, match="4000"):
        tacit.load(tmp_path / "model")
    with pytest.raises(StorageError, match="4000"):
        write_archive(tmp_path / "other", "model", {"learner": "x" * 5000}, {})


def test_a_packed_file_in_the_place_of_a_checkpoint_is_never_unpacked(tmp_path):
    path = tmp_path / "state"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(HEADER, bytes(50_000_000))
    assert path.stat().st_size < 100_000
    assert kind_of(path) is None
    with pytest.raises(ValueError, match="checkpoint"):
        StructuredSVM(Multiclass(), checkpoint=path).fit(X, Y)
    with pytest.raises(StorageError, match="compressed"):
        StructuredSVM(Multiclass(), checkpoint=path, resume=True).fit(X, Y)


def stopped(kind, path):
    """A fit that stopped early and left a checkpoint, and the same fit anew."""
    chain = X.reshape(50, 3, 4), Y.reshape(50, 3)
    make = {
        "Bundle": lambda **s: (StructuredSVM(Multiclass(), solver=Bundle(), max_iter=4, **s), X, Y),
        "FrankWolfe": lambda **s: (StructuredSVM(Multiclass(), solver=FrankWolfe(), max_iter=2, **s), X, Y),
        "planes": lambda **s: (StructuredSVM(Multiclass(), solver=FrankWolfe(block_size=9), max_iter=2, **s), X, Y),
        "chains": lambda **s: (StructuredSVM(Chain(), solver=FrankWolfe(), max_iter=2, **s), *chain),
        "Subgradient": lambda **s: (StructuredSVM(Multiclass(), solver=Subgradient(), max_iter=3, **s), X, Y),
        "LatentSVM": lambda **s: (LatentSVM(Candidates(), max_iter=2, n_init=2, **s), BAGS, LABELS),
        "rounds": lambda **s: (IterativeLatentSVM(Candidates(loss="overlap"), max_iter=3, **s), BAGS, LABELS),
    }[kind]
    learner, data, labels = make(checkpoint=path)
    with pytest.warns(ConvergenceWarning):
        learner.fit(data, labels)
    learner, data, labels = make(checkpoint=path, resume=True)
    return lambda: learner.set_params(max_iter=8).fit(data, labels)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["Bundle", "FrankWolfe", "planes", "chains", "Subgradient", "LatentSVM", "rounds"])
def test_a_checkpoint_that_no_run_wrote_is_refused(kind, tmp_path):
    """Every array of a checkpoint, changed in every way: an error that says so, or a fit like any other."""
    path = tmp_path / "state"
    resume = stopped(kind, path)
    header, arrays = read_archive(path, "checkpoint")
    refused = 0
    changes = (
        lambda a: None,
        lambda a: a[:0] if a.ndim else np.zeros(3),
        lambda a: np.full_like(a, 100) if a.dtype.kind in "iu" else a,
        lambda a: np.full_like(a, -5) if a.dtype.kind == "i" else a,
        lambda a: a * np.nan if a.dtype.kind == "f" else a,
        lambda a: np.zeros_like(a, np.int8) if a.dtype.kind == "f" else a,
        lambda a: a.astype(str),
        lambda a: np.append(a, a),
        lambda a: a[None],
    )
    for name, array in arrays.items():
        for change in changes:
            changed = change(array)
            if changed is array:
                continue
            rest = {k: v for k, v in arrays.items() if k != name}
            seal(path, header, rest if changed is None else {**rest, name: changed}, "checkpoint")
            try:
                model = resume()
            except StorageError as error:
                refused += 1
                assert "resume=False" in str(error) or "broken array" in str(error)  # noqa: PT017
            else:
                assert np.isfinite(model.coef_).all(), name
    assert refused > 4 * len(arrays)
    seal(path, header, arrays, "checkpoint")
    assert np.isfinite(resume().coef_).all()


def test_a_checkpoint_that_does_not_say_its_run_is_refused(tmp_path):
    path = tmp_path / "state"
    resume = stopped("Bundle", path)
    _, arrays = read_archive(path, "checkpoint")
    for header in ({}, {"run": []}, {"run": "mine"}):
        seal(path, header, arrays, "checkpoint")
        with pytest.raises(StorageError, match="run"):
            resume()


def test_a_file_that_may_not_be_read_is_not_called_truncated(tmp_path, monkeypatch):
    path = tmp_path / "model"
    fitted("Multiclass").save(path)

    def denied(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.open", denied)
    with pytest.raises(PermissionError, match="Permission denied") as caught:
        tacit.load(path)
    assert "delete" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links there")
def test_a_linked_file_stays_linked(tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "state"
    link.symlink_to(tmp_path / "disk" / "real")
    StructuredSVM(Multiclass(), C=1, checkpoint=link).fit(X, Y)
    assert link.is_symlink()
    assert kind_of(tmp_path / "disk" / "real") == "checkpoint"
    assert StructuredSVM(Multiclass(), C=1, checkpoint=link, resume=True).fit(X, Y).n_iter_ > 0


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path):
    old, fresh = tmp_path / ".tacit-old.part", tmp_path / ".tacit-new.part"
    for file in (old, fresh):
        file.write_bytes(b"half of a file")
    os.utime(old, (0, 0))
    StructuredSVM(Multiclass(), C=1, checkpoint=tmp_path / "state").fit(X, Y)
    assert not old.exists()
    assert fresh.exists()  # perhaps another process writes it
    os.utime(fresh, (0, 0))
    fitted("Multiclass").save(tmp_path / "model")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model", "state"]


@pytest.mark.parametrize("wrong", [3.5, None, b"model", "", ["a"]])
def test_what_is_no_path_is_refused(wrong, tmp_path):
    model = fitted("Multiclass")
    for call in (
        lambda: tacit.load(wrong),
        lambda: model.save(wrong),
        lambda: StructuredSVM(Multiclass(), checkpoint=wrong if wrong is not None else 3).fit(X, Y),
    ):
        with pytest.raises(TypeError, match="path"):
            call()
    with pytest.raises(ValueError, match="NUL"):
        tacit.load("model\0")
    with pytest.raises(ValueError, match="NUL"):
        StructuredSVM(Multiclass(), checkpoint=str(tmp_path / "a\0b")).fit(X, Y)
    with pytest.raises(FileNotFoundError, match="could not be written"):
        model.save(tmp_path / "nowhere" / "model")
    with pytest.raises(FileNotFoundError, match="exist"):
        tacit.load("x" * 5000)


TAGGED = [["the", "dog", "barks"], ["a", "cat"]] * 8, [["D", "N", "V"], ["D", "N"]] * 8


@pytest.mark.parametrize(
    ("part", "value", "keyword"),
    [
        ("vocabulary_", None, "vocabulary_"),
        ("vocabulary_", 3, "vocabulary_"),
        ("vocabulary_", {"$object": "RareWords", "parts": {}}, "fitted"),
        ("symbols_", np.array(["b", "a", "a"]), "symbols_"),
        ("symbols_", np.zeros((2, 2)), "symbols_"),
        ("classes_", np.array(["V", "N", "D"]), "classes_"),
        ("pairs_", 0, "count"),
        ("pairs_", 2**62, "count"),
    ],
)
def test_a_tagger_is_loaded_only_with_what_prediction_relies_on(tmp_path, part, value, keyword):
    model = SpectralTagger(2, vocabulary=RareWords()).fit(*TAGGED)
    model.save(tmp_path / "model")
    assert tacit.load(tmp_path / "model").predict(TAGGED[0])[0].tolist() == ["D", "N", "V"]
    header, arrays = read_archive(tmp_path / "model", "model")
    if part == "pairs_":
        arrays["fact.pairs_"] = arrays["fact.pairs_"].copy()
        arrays["fact.pairs_"][:, 2] = value
    elif isinstance(value, np.ndarray):
        header["facts"][part] = {"$array": "other"}
        arrays["other"] = value
    else:
        header["facts"][part] = value
    write_archive(tmp_path / "forged", "model", {k: header[k] for k in ("learner", "params", "facts")}, arrays)
    with pytest.raises(StorageError, match=keyword):
        tacit.load(tmp_path / "forged")


def test_a_file_cannot_make_a_ranker_fit_without_end(tmp_path):
    """Each query is a small fit at prediction time, as long as ``tol`` and ``max_iter`` of the file ask for."""
    fitted("TransductiveRanker").save(tmp_path / "model")
    header, arrays = read_archive(tmp_path / "model", "model")
    header["params"] |= {"max_iter": 10**18, "tol": 1e-300}
    write_archive(tmp_path / "forged", "model", {k: header[k] for k in ("learner", "params", "facts")}, arrays)
    assert np.isfinite(tacit.load(tmp_path / "forged").decision_function(X, group=[75, 75])).all()
    header["facts"]["C_"] = float("inf")
    write_archive(tmp_path / "forged", "model", {k: header[k] for k in ("learner", "params", "facts")}, arrays)
    with pytest.raises(StorageError, match="C_"):
        tacit.load(tmp_path / "forged")
