"""Frames of recordings: against SciPy's own transforms, and bad input."""

import numpy as np
import pytest
from scipy.fft import dct, idct
from scipy.io import wavfile
from scipy.signal import get_window, stft

from tacit.signals import cut_frames, read_wav
from tacit.signals.frames import mel_bank

RATE = 8000
TIME = np.arange(RATE) / RATE


def test_power_agrees_with_the_short_time_fourier_transform_of_scipy():
    signal = np.random.default_rng(0).standard_normal(RATE)
    found = cut_frames([signal], RATE, kind="log-mel", deltas=0, normalise=False).values
    _, _, spectrum = stft(signal, RATE, "hamming", 200, 120, boundary=None, padded=False, scaling="spectrum")
    power = np.abs(spectrum.T * get_window("hamming", 200).sum()) ** 2
    assert found == pytest.approx(np.log(power @ mel_bank(RATE, 200, 26).T), rel=1e-6)


def test_cepstra_are_cosine_transforms_of_the_bands():
    signal = np.random.default_rng(1).standard_normal(RATE)
    options = {"deltas": 0, "normalise": False}
    bands = cut_frames([signal], RATE, kind="log-mel", **options).values
    cepstra = cut_frames([signal], RATE, n_coefficients=26, **options).values
    assert idct(cepstra, norm="ortho", axis=1) == pytest.approx(bands)
    assert cut_frames([signal], RATE, **options).values == pytest.approx(dct(bands, norm="ortho", axis=1)[:, :13])


@pytest.mark.parametrize("frequency", [300, 1000, 3000])
def test_a_tone_is_loudest_in_its_own_band(frequency):
    found = cut_frames([np.sin(2 * np.pi * frequency * TIME)], RATE, kind="log-mel", deltas=0, normalise=False).values
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 4000 / 700), 28) / 2595) - 1)
    band = int(np.argmax(found.mean(axis=0)))
    assert edges[band] <= frequency <= edges[band + 2]


def test_loudness_does_not_matter_once_normalised():
    signal = np.random.default_rng(2).standard_normal(RATE)
    assert cut_frames([signal], RATE).values == pytest.approx(cut_frames([100 * signal], RATE).values)
    assert np.isfinite(cut_frames([np.zeros(RATE)], RATE).values).all()


def test_groups_are_normalised_together():
    rng = np.random.default_rng(3)
    signals = [factor * rng.standard_normal(RATE) for factor in (1.0, 10.0, 0.1)]
    found = cut_frames(signals, RATE, groups=["a", "b", "a"])
    own = np.vstack([found[0], found[2]])
    assert own.mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert own.std(axis=0) == pytest.approx(1)
    assert found[0][:, 0].mean() > 0.9  # the louder one of its group
    assert found[1] == pytest.approx(cut_frames(signals[1:2], RATE).values)


def test_pauses_do_not_change_frames_that_are_normalised_over_speech():
    rng = np.random.default_rng(5)
    speech, pause = rng.standard_normal(RATE), 1e-4 * rng.standard_normal(RATE)
    inside = slice(RATE // 80 + 1, RATE // 80 + 90)
    longer = cut_frames([np.r_[pause, speech, pause]], RATE, deltas=0, normalise="speech").values
    assert longer[inside].mean(axis=0) == pytest.approx(0, abs=0.15)
    assert longer[inside, 1:].std(axis=0) == pytest.approx(1, abs=0.15)
    assert longer[:90, 0].max() == -3  # cut off
    every = cut_frames([np.r_[pause, speech, pause]], RATE, deltas=0).values
    assert every[inside, 0].mean() > 1


def test_squares_have_the_deviation_of_the_features():
    signal = np.random.default_rng(4).standard_normal(RATE)
    plain, both = cut_frames([signal], RATE).values, cut_frames([signal], RATE, squares=True).values
    assert both[:, :26] == pytest.approx(plain)
    assert both[:, 26:] * np.sqrt(2) + 1 == pytest.approx(plain**2)


def test_a_warped_tone_looks_like_a_higher_one():
    options = {"kind": "log-mel", "deltas": 0, "normalise": False}
    tones = [np.sin(2 * np.pi * frequency * TIME) for frequency in (1000, 1150)]
    low, high = (cut_frames([tone], RATE, **options).values.mean(axis=0) for tone in tones)
    warped = cut_frames([tones[0]], RATE, warp=1.15, **options).values.mean(axis=0)
    assert np.argmax(low) < np.argmax(high)
    assert np.argmax(warped) == np.argmax(high)
    frequencies = np.arange(101) * RATE / 200
    bank = mel_bank(RATE, 200, 20, 300.0, 3400.0)
    assert not bank[:, (frequencies < 300) | (frequencies > 3400)].any()


def test_read_wav(tmp_path):
    whole = np.array([0, 100, -100, 127], dtype=np.int16)
    wavfile.write(tmp_path / "a.wav", RATE, whole)
    found = read_wav(tmp_path / "a.wav")
    assert found.rate == RATE
    assert found.samples == pytest.approx(whole / 32768)
    wavfile.write(tmp_path / "two.wav", RATE, np.zeros((4, 2), dtype=np.int16))
    with pytest.raises(ValueError, match="channels"):
        read_wav(tmp_path / "two.wav")
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    with pytest.raises(ValueError, match="wav"):
        read_wav(tmp_path / "bad.wav")
    with pytest.raises(FileNotFoundError, match="missing"):
        read_wav(tmp_path / "none.wav")


def test_read_wav_refuses_large_files_and_what_is_not_a_path(tmp_path):
    wavfile.write(tmp_path / "a.wav", RATE, np.zeros(1000, dtype=np.int16))
    with pytest.raises(ValueError, match="max_bytes"):
        read_wav(tmp_path / "a.wav", max_bytes=1000)
    wavfile.write(tmp_path / "b.wav", RATE, np.array([0.0, np.inf], dtype=np.float32))
    with pytest.raises(ValueError, match="finite"):
        read_wav(tmp_path / "b.wav")
    for path in (None, 3, ["a.wav"]):
        with pytest.raises(TypeError, match="path"):
            read_wav(path)


def test_frames_are_computed_in_blocks(monkeypatch):
    signal = np.random.default_rng(5).standard_normal(RATE)
    whole = cut_frames([signal], RATE).values
    monkeypatch.setattr("tacit.signals.frames.BLOCK", 1000)
    assert cut_frames([signal], RATE).values == pytest.approx(whole)


@pytest.mark.parametrize(
    ("signals", "options", "keyword"),
    [
        (TIME, {}, "list"),
        ([np.zeros((RATE, 2))], {}, "channel"),
        ([np.r_[TIME, np.nan]], {}, "NaN"),
        ([TIME[:10]], {}, "frame"),
        ([TIME], {"window": 0}, "window"),
        ([TIME], {"kind": "wavelet"}, "kind"),
        ([TIME], {"deltas": 3}, "deltas"),
        ([TIME], {"groups": ["a", "b"]}, "groups"),
        ([TIME], {"groups": ["a"], "normalise": False}, "normalise"),
        ([TIME], {"normalise": "loud"}, "normalise"),
        ([TIME], {"warp": 3.0}, "warp"),
        ([TIME], {"low": 3000.0, "high": 2000.0}, "low"),
        ([TIME], {"high": 5000.0}, "high"),
        ([TIME], {"n_coefficients": 40}, "n_mels"),
        ([["a", "b"]], {}, "signals"),
        (iter([TIME]), {}, "signals"),
        ([TIME], {"groups": iter("a")}, "groups"),
        ([1e200 * TIME], {}, "large"),
        ([TIME], {"high": 1e-290}, "high"),
        ([np.zeros(100_000)], {"window": 6.0, "step": 0.0003}, "window"),
        ([np.zeros(1_000_000)], {"window": 100.0, "step": 100.0, "n_mels": 1024}, "n_mels"),
    ],
)
def test_bad_input_is_refused(signals, options, keyword):
    with pytest.raises(ValueError, match=keyword):
        cut_frames(signals, RATE, **options)


@pytest.mark.parametrize("normalise", [np.zeros(0), np.ones(2), "loud", None])
def test_odd_values_of_normalise_are_refused(normalise):
    with pytest.raises((TypeError, ValueError), match="normalise"):
        cut_frames([np.ones(400)], 8000, normalise=normalise)
