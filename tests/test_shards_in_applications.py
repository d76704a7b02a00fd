"""Shards on disk in place of files and photos: `tacit motif` and `tacit locate` answer as from memory."""

import numpy as np
import pytest

from tacit import LatentSVM, Shards, load, window_maps
from tacit.apps import Locator, MotifFinder
from tacit.cli import main
from tacit.datasets import planted_motif
from tacit.problems import Detection
from tacit.vision.maps import GradientMap, photo_maps
from tacit.vision.maps.photo_maps import MapShards
from tacit.vision.photos import image_folder
from tests.tiny_network import write_network, write_photos


@pytest.fixture(scope="module")
def sequences(tmp_path_factory):
    """Sequences with a motif: as FASTA files and as folders of shards."""
    home = tmp_path_factory.mktemp("sequences")
    X, y, _ = planted_motif(200, 30, "TGACTCAT", noise=0.1, strands="both", seed=0)
    letters = [str(own, "ascii") if isinstance(own, bytes) else str(own) for own in X]
    for name, label in (("bound", 1), ("free", -1)):
        own = [text for text, kind in zip(letters, y, strict=True) if kind == label]
        Shards.write(home / name, own, shards=3)
        (home / f"{name}.fa").write_text("".join(f">{name}:{i}\n{text}\n" for i, text in enumerate(own, 1)))
    return home


def test_motifs_of_shards_are_those_of_files(sequences, capsys):
    for ending in ("", ".fa"):
        files = [str(sequences / f"{name}{ending}") for name in ("bound", "free")]
        assert main(["motif", *files, "--width", "8", "--quiet", "--out", str(sequences / f"out{ending}")]) == 0
    for name in ("motifs.meme", "sites.tsv", "predictions.tsv"):
        assert (sequences / "out" / name).read_text() == (sequences / "out.fa" / name).read_text()


def test_a_finder_takes_shards(sequences):
    X, y, _ = planted_motif(60, 20, "TGACTCAT", noise=0.1, strands="both", seed=0)
    folder = sequences / "all"
    shards = Shards.write(folder, X, shards=2)
    settings = {"width": 8, "n_motifs": 1, "motif_only": True, "verbose": 0}
    from_disk, from_memory = MotifFinder(**settings).fit(shards, y), MotifFinder(**settings).fit(X, y)
    np.testing.assert_array_equal(from_disk.coef_, from_memory.coef_)


def test_folders_that_are_no_shards_of_sequences_are_refused(sequences, capsys):
    (sequences / "empty").mkdir()
    Shards.write(sequences / "numbers", np.ones((20, 3)))
    for folder, words in (("empty", "shards.json"), ("numbers", "sequences")):
        assert main(["motif", str(sequences / folder), "--out", str(sequences / "none")]) != 0
        said = capsys.readouterr().err
        assert words in said
        assert "Errno" not in said


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    home = tmp_path_factory.mktemp("photos")
    write_photos(home / "photos", n=6)
    write_network(home / "net.onnx")
    return home


def test_maps_on_disk_give_the_locator_of_maps_in_memory(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(photo_maps, "PHOTOS_PER_SHARD", 5)  # several shards
    monkeypatch.setattr(photo_maps, "CELLS_AT_A_TIME", 7)  # fewer than a map has
    files, y = image_folder(photos / "photos")
    settings = {"features": str(photos / "net.onnx"), "n_components": 3, "verbose": 0}
    here = Locator(**settings).fit(files, y)
    there = Locator(**settings, spool=tmp_path / "spool").fit(files, y)
    np.testing.assert_array_equal(here.coef_, there.coef_)
    np.testing.assert_array_equal(here.found_boxes_, there.found_boxes_)
    np.testing.assert_array_equal(here.predict(files[:7]).boxes, there.predict(files[:7]).boxes)
    assert not list((tmp_path / "spool").iterdir()), "maps stay on disk when nobody needs them"


def test_the_command_spools_maps(photos, tmp_path):
    arguments = ["locate", str(photos / "photos"), "--features", str(photos / "net.onnx"), "--quiet"]
    assert main([*arguments, "--out", str(tmp_path / "here")]) == 0
    assert main([*arguments, "--out", str(tmp_path / "there"), "--spool", str(tmp_path / "spool")]) == 0
    assert (tmp_path / "here" / "boxes.csv").read_text() == (tmp_path / "there" / "boxes.csv").read_text()
    model = str(tmp_path / "there" / "model.tacit")
    assert load(model).spool is None
    new = ["locate", str(photos / "photos"), "--model", model, "--quiet", "--out", str(tmp_path / "new")]
    assert main([*new, "--spool", str(tmp_path / "spool")]) == 0
    assert not list((tmp_path / "spool").iterdir())


def test_any_learner_takes_maps_on_disk(tmp_path):
    rng = np.random.default_rng(0)
    images, y = list(rng.random((6, 40, 48))), np.arange(6) % 2
    features = GradientMap(side=40)
    maps = window_maps(images, features, verbose=0)
    on_disk = MapShards.write(tmp_path / "maps", images, features, verbose=0)
    np.testing.assert_array_equal(on_disk.means(), maps.means())
    np.testing.assert_array_equal(MapShards(tmp_path / "maps").in_memory().values, maps.values)
    for kept in (None, 4):
        model = LatentSVM(Detection(n_components=kept), C=1.0, verbose=0)
        weights = [model.fit(X, y).coef_ for X in (maps, on_disk)]
        np.testing.assert_array_equal(*weights)


def test_maps_that_are_damaged_or_none_are_refused(tmp_path):
    images = list(np.random.default_rng(0).random((2, 40, 40)))
    MapShards.write(tmp_path / "maps", images, GradientMap(side=40), verbose=0)
    np.save(tmp_path / "maps" / "maps.npy", np.ones((3, 5)))
    with pytest.raises(ValueError, match="2 maps"):
        MapShards(tmp_path / "maps")
    shapes = tmp_path / "maps" / "maps.npy"
    for content in (b"", b"nonsense", shapes.read_bytes()[:-8]):
        shapes.write_bytes(content)
        with pytest.raises(ValueError, match=r"maps\.npy"):
            MapShards(tmp_path / "maps")
    np.save(shapes, np.full((2, 5), np.nan))
    with pytest.raises(ValueError, match="sizes"):
        MapShards(tmp_path / "maps")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="spool"):
        MapShards.write_in(tmp_path / "file", images, GradientMap(side=40), verbose=0)
    Shards.write(tmp_path / "rows", np.ones((4, 2)))
    with pytest.raises(FileNotFoundError, match="maps"):
        MapShards(tmp_path / "rows")
    with pytest.raises(FileExistsError, match="empty"):
        MapShards.write(tmp_path / "maps", images, GradientMap(side=40), verbose=0)
