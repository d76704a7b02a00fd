"""The features of photos that a `Locator` was fitted with: learned from photos, checked, and computed again."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.vision.maps.handmade import handmade_maps
from tacit.vision.maps.lite0 import default_network
from tacit.vision.maps.network import NetworkMap, read_features
from tacit.vision.maps.photo_maps import MapShards, window_maps
from tacit.vision.maps.window_maps import WindowMaps
from tacit.vision.photos import image_sources, photo_pixels


class PhotoFeatures(NamedTuple):
    """Which features, and how photos are described by them.

    Attributes
    ----------
    features : "network", the path of a network, "handmade", or a map
    random_state : seed of visual words
    side : pixels of the longest side of photos, for networks given by name or path; None for their default
    spool : a folder for maps that do not fit into memory
    settings : cache, n_jobs and verbose of `tacit.window_maps`
    """

    features: Any
    random_state: int
    side: int | None
    spool: str | os.PathLike[str] | None
    settings: dict[str, Any]

    @property
    def is_handmade(self) -> bool:
        """Whether no network is needed."""
        return isinstance(self.features, str) and self.features == "handmade"

    def check(self) -> None:
        """Refuse features that cannot be read."""
        if not self.is_handmade:
            self._network_map()

    def fit(self, photos: Any) -> tuple[WindowMaps | MapShards, Array | None, str | None]:
        """Maps, the visual words that were learned for them, and the checksum of the network; maps pass as they are."""
        if isinstance(photos, WindowMaps | MapShards):
            return photos, None, None
        if not self.is_handmade:
            maker = self._network_map()
            return self._compute(photos, maker), None, maker.digest()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # EXIF warnings come when the photo is described
            pixels = [photo_pixels(source) for source in image_sources(photos)]
        handmade = handmade_maps(self.random_state).fit(pixels)
        return self._compute(photos, handmade), handmade.maps[-1].centres_, None

    def describe(self, photos: Any, words: Array | None, digest: str | None) -> WindowMaps | MapShards:
        """Maps of other photos, by the words or the network of `fit`."""
        if isinstance(photos, WindowMaps | MapShards):
            return photos
        if words is None:
            return self._compute(photos, self._fitted_network(digest))
        maker = handmade_maps(self.random_state)
        maker.maps[-1].centres_ = words
        return self._compute(photos, maker)

    def _compute(self, photos: Any, maker: Any) -> WindowMaps | MapShards:
        if self.spool is not None:
            return MapShards.write_in(self.spool, photos, maker, **self.settings)
        return window_maps(photos, maker, **self.settings)

    def _network_map(self) -> Any:
        features = default_network() if isinstance(self.features, str) and self.features == "network" else self.features
        maker = read_features(features)
        if isinstance(maker, NetworkMap) and maker is not self.features and self.side is not None:
            maker.side = self.side
        return maker

    def _fitted_network(self, digest: str | None) -> Any:
        """The network of the fit, by its checksum, whatever the path is now."""
        wanted = str(digest or "").split(" ")[0]
        try:
            maker = self._network_map()
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"the network of this model is missing: {Path(str(self.features)).name!r} with the SHA-256 {wanted}; "
                "give its path (--features)"
            ) from error
        if digest is not None and maker.digest() != digest:
            raise ValueError(
                f"the network {shorten(str(self.features))} differs from that of the fit, whose SHA-256 is {wanted}; "
                "use the same file, or fit again"
            )
        return maker
