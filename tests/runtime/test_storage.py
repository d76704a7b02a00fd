"""Files: a round trip without pickle, and clear words for files that are not what they should be."""

import json
import os
import sys
import zipfile
from collections import namedtuple
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import tacit
from tacit import StructuredSVM
from tacit.problems import Candidates, Multiclass
from tacit.runtime import storage
from tacit.runtime.archive import StorageError, find_stored, read_archive, storable, write_archive
from tacit.solvers import Bundle


class Mine(Multiclass):
    """A user's own problem."""


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture
def saved(iris, tmp_path):
    path = tmp_path / "iris.tacit"
    StructuredSVM(Multiclass()).fit(*iris).save(path)
    return path


def test_everything_comes_back(iris, tmp_path):
    X, y = iris
    costs = np.array([[0, 1, 2.5], [1, 0, 1], [1, 1, 0]])
    names = np.array(["a", "b", "c"])[y]
    model = StructuredSVM(
        Multiclass(loss=costs, classes=["c", "a", "b"], fit_intercept=False),
        C=np.float64(7),
        solver=Bundle(proximal=False),
        class_weight={"a": 2.0},
        random_state=np.random.RandomState(0),
        callbacks=[lambda step: None],
    ).fit(pd.DataFrame(X, columns=list("wxyz")), names)
    model.save(tmp_path / "model")
    other = tacit.load(tmp_path / "model")
    assert type(other) is StructuredSVM
    assert type(other.problem) is Multiclass
    assert not other.solver.proximal
    assert other.C == 7
    assert other.class_weight == {"a": 2.0}
    assert other.callbacks is None
    np.testing.assert_array_equal(other.problem.loss, costs)
    np.testing.assert_array_equal(other.coef_, model.coef_)
    assert list(other.weights_) == list(model.weights_)
    assert other.status_ is model.status_
    assert other.history_ == model.history_
    assert other.feature_names_in_.tolist() == list("wxyz")
    assert other.objective_ == model.objective_
    frame = pd.DataFrame(X, columns=list("wxyz"))
    np.testing.assert_array_equal(other.predict(frame), model.predict(frame))
    other.fit(frame, names)  # it can be trained again
    assert other.objective_ == pytest.approx(model.objective_)


def test_keys_that_are_not_strings_come_back(iris, tmp_path):
    model = StructuredSVM(Multiclass(), class_weight={0: 2.0, 1: 1.0}).fit(*iris)
    model.save(tmp_path / "model")
    assert tacit.load(tmp_path / "model").class_weight == {0: 2.0, 1: 1.0}


def test_bags_come_back(bags, tmp_path):
    X, y, hidden = bags
    model = StructuredSVM(Candidates()).fit(X, y, hidden=hidden)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(tacit.load(tmp_path / "model").predict_hidden(X), model.predict_hidden(X))


def test_nothing_in_a_file_is_a_pickle(saved):
    with zipfile.ZipFile(saved) as archive:
        for name in archive.namelist():
            blob = archive.read(name)
            assert name == "header.json" or blob.startswith(b"\x93NUMPY")
            assert b"'O'" not in blob[:128]


def test_a_users_problem_must_be_passed(iris, tmp_path):
    model = StructuredSVM(Mine()).fit(*iris)
    path = tmp_path / "mine"
    model.save(path)
    with pytest.raises(StorageError, match="Mine"):
        tacit.load(path)
    with pytest.raises(StorageError, match="problem=Multiclass"):
        tacit.load(path, problem=Multiclass())
    np.testing.assert_array_equal(tacit.load(path, problem=Mine()).predict(iris[0]), model.predict(iris[0]))


def test_a_problem_that_is_not_needed_is_refused(saved):
    with pytest.raises(StorageError, match="problem="):
        tacit.load(saved, problem=Multiclass())


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.9, 0.999])
def test_truncated_files_are_refused(saved, keep):
    blob = saved.read_bytes()
    saved.write_bytes(blob[: int(keep * len(blob)) if isinstance(keep, float) else keep])
    with pytest.raises(StorageError, match="truncated"):
        tacit.load(saved)


def test_changed_bytes_are_refused(saved):
    blob = bytearray(saved.read_bytes())
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        copy = bytearray(blob)
        copy[int(rng.integers(len(blob)))] ^= 0xFF
        saved.write_bytes(copy)
        try:
            tacit.load(saved)
        except StorageError:
            refused += 1
    assert refused > 40  # the rest fell on bytes that mean nothing, such as the zip's dates


def test_a_tampered_header_is_refused(saved):
    rewrite(saved, lambda text: text.replace('"C": 100.0', '"C": 200.0'))
    with pytest.raises(StorageError, match="changed"):
        tacit.load(saved)


def test_a_newer_format_is_refused(saved):
    rewrite(saved, lambda text: text.replace('"format": 1', '"format": 2'))
    with pytest.raises(StorageError, match="upgrade"):
        tacit.load(saved)


def test_unknown_classes_are_never_built(tmp_path):
    for name in ("os.system", "minimise", "Path", "eval"):
        write_archive(tmp_path / "model", "model", {"learner": name, "params": {}, "facts": {}}, {})
        with pytest.raises(StorageError, match="class"):
            tacit.load(tmp_path / "model")
    parts = {"learner": "StructuredSVM", "params": {"problem": {"$object": "Popen", "parts": {}}}, "facts": {}}
    write_archive(tmp_path / "model", "model", parts, {})
    with pytest.raises(StorageError, match="'Popen'"):
        tacit.load(tmp_path / "model")


def test_other_kinds_of_files_are_refused(tmp_path):
    write_archive(tmp_path / "state", "checkpoint", {}, {})
    with pytest.raises(StorageError, match="checkpoint"):
        tacit.load(tmp_path / "state")
    with pytest.raises(FileNotFoundError, match="file"):
        tacit.load(tmp_path / "nothing")
    np.savez_compressed(tmp_path / "other.npz", a=np.zeros(1000))
    with pytest.raises(StorageError, match="compressed"):
        tacit.load(tmp_path / "other.npz")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(StorageError, match="tacit file"):
        tacit.load(tmp_path / "text")


def test_a_users_learner_is_restored_with_its_class_alone(iris, tmp_path):
    class MySVM(StructuredSVM):
        pass

    model = MySVM(Multiclass()).fit(*iris)
    model.save(tmp_path / "mine")
    loaded = tacit.load(tmp_path / "mine", classes=[MySVM])
    assert type(loaded) is MySVM
    assert (loaded.predict(iris[0]) == model.predict(iris[0])).all()
    with pytest.raises(StorageError, match=r"classes=\[MySVM\]"):
        tacit.load(tmp_path / "mine")


def test_a_class_that_borrows_a_name_of_tacit_is_refused_when_saving(iris, tmp_path):
    Borrowed = type("StructuredSVM", (StructuredSVM,), {"__module__": __name__})
    with pytest.raises(StorageError, match="name"):
        Borrowed(Multiclass()).fit(*iris).save(tmp_path / "mine")


def test_a_class_without_check_is_not_stored():
    with pytest.raises(TypeError, match="Unchecked"):
        storable(type("Unchecked", (), {}))
    assert find_stored("Unchecked") is None
    assert find_stored("windows") is None  # a function that tacit exports


def test_what_could_not_be_loaded_again_is_not_saved(iris, tmp_path):
    model = StructuredSVM(Multiclass()).fit(*iris)
    line = namedtuple("Line", "gap")(0.0)
    type(line).__module__ = "tacit.somewhere"
    with pytest.raises(StorageError, match=r"fact\.history_"):
        storage.save(tmp_path / "model", model, model.learned_attributes() | {"history_": line})


def test_malformed_headers_are_refused(tmp_path):
    path = tmp_path / "model"
    for header, words in (
        ({"learner": "Bundle", "params": {}, "facts": {}}, "learner"),
        ({"learner": "StructuredSVM", "params": {"problem": None}, "facts": {"gap_": 1.0}}, "tacit model"),
        ({"learner": "StructuredSVM", "params": {"nonsense": 1}, "facts": {}}, "tacit model"),
        ({"learner": "StructuredSVM"}, "malformed"),
    ):
        write_archive(path, "model", header, {})
        with pytest.raises(StorageError, match=words):
            tacit.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "[" * 100000)
    with pytest.raises(StorageError, match="tacit file"):
        tacit.load(path)


@pytest.mark.skipif(sys.platform == "win32", reason="no umask there")
def test_files_have_ordinary_permissions(saved):
    mask = os.umask(0)
    os.umask(mask)
    assert saved.stat().st_mode & 0o777 == 0o666 & ~mask
    saved.chmod(0o640)
    StructuredSVM(Multiclass()).fit(*load_iris(return_X_y=True)).save(saved)
    assert saved.stat().st_mode & 0o777 == 0o640


def test_python_objects_are_refused_when_saving(tmp_path):
    with pytest.raises(StorageError, match="objects"):
        write_archive(tmp_path / "x", "model", {}, {"a": np.array([object()])})
    assert list(tmp_path.iterdir()) == []


def test_a_schema_that_does_not_fit_is_refused_before_a_kernel_reads_it(saved, iris):
    """A sealed file may still lie about its sizes."""
    model = tacit.load(saved)
    model.schema_ = replace(model.schema_, blocks={"weights": (1, 4), "intercept": (1,)})
    with pytest.raises(ValueError, match="3 classes"):
        model.impute(*iris)


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_archive(saved, "model", {}, {})
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_archives_hold_any_plain_array(tmp_path):
    arrays = {"a": np.arange(3), "b": np.array(["x", "yz"]), "c": np.zeros((0, 4)), "d": np.float32(2)}
    write_archive(tmp_path / "x", "model", {"k": [1, None, "ü"]}, arrays)
    header, back = read_archive(tmp_path / "x", "model")
    assert header["k"] == [1, None, "ü"]
    for name, value in arrays.items():
        np.testing.assert_array_equal(back[name], value)


def rewrite(path, change):
    """Change the header's text and leave its checksum."""
    with zipfile.ZipFile(path) as archive:
        blobs = {name: archive.read(name) for name in archive.namelist()}
    envelope = json.loads(blobs["header.json"])
    changed = change(envelope["text"])
    assert changed != envelope["text"]
    blobs["header.json"] = json.dumps({**envelope, "text": changed}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, blob in blobs.items():
            archive.writestr(name, blob)
