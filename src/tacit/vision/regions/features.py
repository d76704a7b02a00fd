"""Features of a region of an image, and of a pair of neighbouring regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from tacit.data.arrays import Array

TEXTURES = 10
"""Uniform local binary patterns of eight neighbours (Ojala et al. 2002)."""

COLOUR_SCALE = 50.0
"""CIELAB values are divided by this: black to white is 2."""

COARSE_SCALES = (100, 300)
"""Scales of the large segments (Felzenszwalb & Huttenlocher 2004) whose features their regions share."""

KERNELS = (("colour", 0.1), ("colour", 0.3), ("texture", 0.15), ("colour and texture", 0.3))
"""Similarity kernels of two regions: their features, and the distance at which similarity has fallen to exp(−½)."""

MAX_WITNESSES = 256
"""Regions that sums over all regions of an image are estimated from; with no more regions, the sums are exact."""

WEAK_LINK = 1e-9
"""Affinity of regions that are not neighbours in manifold ranking, so that all are connected."""

FAR = 4.0
"""Distance of regions that no path connects, in differences of colour: more than from black to white."""

_OWN = (
    *(f"mean {c}" for c in "Lab"),
    *(f"standard deviation of {c}" for c in "Lab"),
    "gradient",
    "standard deviation of the gradient",
    *(f"texture {k}" for k in range(TEXTURES)),
)
OWN_FEATURES = len(_OWN)
"""The first columns describe the region alone: colours, gradients, textures."""

_CENTRES = (-0.7, -0.23, 0.23, 0.7)
"""Coordinates of the spots along either side of an image, from −1 to 1."""

SPOT_WIDTH = 0.35
"""Standard deviation of a spot: neighbouring ones overlap."""

CENTRE_WIDTHS = (0.25, 0.5, 0.8)
"""Standard deviations of the spots in the middle of the image."""

_LOCATION = (
    "x", "y", "x²", "y²", "xy", "distance from the centre", "share on the border", "touches the border",
    "touches the top", "touches the bottom", "log area", "width", "height",
    *(f"in the middle, spot of {width}" for width in CENTRE_WIDTHS),
    "distance across", "distance down", "nearness to a side",
    *(f"spot at {x}, {y}" for x in _CENTRES for y in _CENTRES),
)  # fmt: skip
_AGAINST = (
    *(f"{c} against the image" for c in "Lab"),
    *(f"{c} against the border" for c in "Lab"),
    "colour distance from the border",
    "colour distance from the nearest border region",
    "colour distance from the neighbours",
    "rank of the lightness in the image",
)

_SALIENCE = (
    *(f"{what} of the centre against the border, kernel {width}" for what, width in KERNELS),
    *(f"share of the image that is similar, kernel {width}" for _, width in KERNELS[:2]),
    *(f"{what} of similar regions" for what in ("x", "y", "distance from the centre", "radius", "share on the border")),
    "path to the border",
    "path to the centre",
    "border of connected regions",
    "contrast to the surroundings",
    "contrast to the image",
    *(f"rank as background from the {side}" for side in ("top", "bottom", "left", "right")),
    "rank as foreground",
    "rank as foreground, of foreground",
)
_COARSE = (
    *("log area", "share on the border", "distance from the centre", "radius", "colour distance from the border"),
    *("centre against the border", "rank as foreground", "L against the rest", "a against the rest"),
    *("b against the rest", "gradient"),
)
"""Features of the large segment around a region."""

REGION_FEATURES: tuple[str, ...] = (
    *(*_OWN, *_LOCATION, *_AGAINST, *_SALIENCE),
    *(f"{name}, segment of scale {scale}" for scale in COARSE_SCALES for name in _COARSE),
    *(f"{name}, neighbours" for name in _OWN),
)
"""The columns that describe a region."""

REGION_SCALES: tuple[float, ...] = (
    *(1.0 for _ in _OWN),
    *(2.0 for _ in _LOCATION),
    *(1.0 for _ in (*_AGAINST, *_SALIENCE)),
    *(0.6 for _ in COARSE_SCALES for _ in _COARSE),
    *(1.0 for _ in _OWN),
)
"""Scale of each column where masks are few (`scales` of `tacit.problems.Regions`): the location of the object in
photos is the most reliable feature, the large segments the least."""

EDGE_FEATURES = ("border", "similar colour", "very similar colour", "similar texture", "weak gradient between")
"""The columns that describe a pair of neighbours, each times the length of their common border.

A straight border of a region of mean size has `BORDER_SCALE` times the share of the image that such a region has. So
borders and regions have features of the same size, whatever the size of the image."""

BORDER_SCALE = 3.0
"""Above 1, so that the weights of pairs, which are few, cost little."""


class Described(NamedTuple):
    """The regions of an image: their features and areas, pairs of neighbours and theirs, the region of every pixel."""

    values: Array
    areas: Array
    edges: Array
    edge_values: Array
    regions: Array


def describe_regions(colours: Array, regions: Array) -> Described:
    """Describe the regions of an image (height, width, 3) in [0, 1], given the region of every pixel.

    >>> image = np.zeros((4, 6, 3)); image[:, 3:] = 1
    >>> found = describe_regions(image, np.repeat([[0, 0, 0, 1, 1, 1]], 4, axis=0))
    >>> found.values.shape == (2, len(REGION_FEATURES)), found.edges
    (True, array([[0, 1]]))
    """
    n = int(regions.max()) + 1
    flat = regions.ravel()
    areas = np.bincount(flat, minlength=n).astype(np.float64)
    lab, slope, patterns = _pixel_maps(colours)
    pixels = np.column_stack([lab.reshape(-1, 3), slope.ravel()])
    sums = sparse.csr_array((np.ones(flat.size), (flat, np.arange(flat.size))), shape=(n, flat.size))
    means = (sums @ pixels) / areas[:, None]
    deviations = np.sqrt(np.maximum((sums @ pixels**2) / areas[:, None] - means**2, 0))
    texture = np.zeros((n, TEXTURES))
    np.add.at(texture, (flat, patterns.ravel()), 1.0)
    texture = np.sqrt(texture / areas[:, None])
    own = np.hstack([means[:, :3], deviations[:, :3], means[:, 3:], deviations[:, 3:], texture])
    edges, lengths, between = _find_neighbours(regions, slope)
    both_ways = edges.ravel("F"), edges[:, ::-1].ravel("F")
    borders = sparse.csr_array((np.tile(lengths, 2), both_ways), shape=(n, n))
    around = np.asarray(borders.sum(axis=1)).ravel()
    beside = np.where(around[:, None] > 0, (borders @ own) / np.maximum(around, 1)[:, None], own)
    location, on_border = _locate(regions, areas, n)
    against = _compare_colours(means[:, :3], areas, on_border, beside[:, :3])
    salience = _rate_salience(own, location, areas, on_border, edges, regions)
    coarse = [_describe_segments(colours, scale, regions, sums, areas, pixels, salience) for scale in COARSE_SCALES]
    values = np.hstack([own, location, against, salience, *coarse, beside])
    unit = np.sqrt(flat.size * n)  # the border of a square region of mean size, times four, in shares of the image
    edge_values = _compare_pairs(own, edges, BORDER_SCALE * lengths / unit, between)
    return Described(values.astype(np.float32), areas, edges, edge_values, regions.astype(np.int32))


def _pixel_maps(colours: Array) -> tuple[Array, Array, Array]:
    """CIELAB, the size of the gradient of lightness, and the local binary pattern of every pixel."""
    from skimage.color import rgb2lab
    from skimage.feature import local_binary_pattern

    lab = rgb2lab(colours) / COLOUR_SCALE
    light = lab[:, :, 0]
    down, across = (np.gradient(light, axis=axis) if light.shape[axis] > 1 else np.zeros_like(light) for axis in (0, 1))
    grey = np.round(255 * light / 2).astype(np.uint8)
    return lab, np.hypot(down, across), local_binary_pattern(grey, 8, 1, "uniform").astype(np.int64)


def _find_neighbours(regions: Array, slope: Array) -> tuple[Array, Array, Array]:
    """Pairs of regions that share a border, its length in pixels, and the mean gradient along it."""
    pairs, sizes = [], []
    for one, other, a, b in (
        (regions[:, :-1], regions[:, 1:], slope[:, :-1], slope[:, 1:]),
        (regions[:-1], regions[1:], slope[:-1], slope[1:]),
    ):
        is_border = one != other
        pairs.append(np.sort(np.column_stack([one[is_border], other[is_border]]), axis=1))
        sizes.append(0.5 * (a[is_border] + b[is_border]))
    edges, owner = np.unique(np.concatenate(pairs), axis=0, return_inverse=True)
    owner = owner.ravel()
    lengths = np.bincount(owner, minlength=len(edges)).astype(np.float64)
    between = np.bincount(owner, np.concatenate(sizes), len(edges)) / np.maximum(lengths, 1)
    return edges.astype(np.int64).reshape(-1, 2), lengths, between


def _locate(regions: Array, areas: Array, n: int) -> tuple[Array, Array]:
    """The location of regions, from −1 to 1, and how much of the image's border each has."""
    height, width = regions.shape
    flat = regions.ravel()
    rows, columns = (part.ravel() for part in np.mgrid[:height, :width])
    across, down = 2 * (columns + 0.5) / width - 1, 2 * (rows + 0.5) / height - 1
    x, y = (np.bincount(flat, at, n) / areas for at in (across, down))
    extent = []
    for at, size in ((columns, width), (rows, height)):
        low, high = np.full(n, size), np.zeros(n, dtype=np.int64)
        np.minimum.at(low, flat, at)
        np.maximum.at(high, flat, at)
        extent.append((high + 1 - low) / size)
    top, bottom = (np.bincount(regions[row], minlength=n) for row in (0, -1))
    sides = np.bincount(regions[:, 0], minlength=n) + np.bincount(regions[:, -1], minlength=n)
    on_border = (top + bottom + sides).astype(np.float64)
    found = [
        *(x, y, x**2, y**2, x * y, np.hypot(x, y)),
        *(on_border / np.sqrt(areas), on_border > 0, top > 0, bottom > 0),
        *(0.5 * np.log(areas / flat.size), *extent),
    ]
    nearness = [np.bincount(flat, spot, n) / areas for spot in spots(across, down)]
    return np.column_stack([*found, *nearness]), on_border


def spots(x: Array, y: Array) -> list[Array]:
    """How near every pixel is to the middle, to the sides, and to a grid of spots in the image."""
    far_x, far_y = np.abs(x), np.abs(y)
    middle = [np.exp(-0.5 * (x**2 + y**2) / width**2) for width in CENTRE_WIDTHS]
    along_x, along_y = ([np.exp(-0.5 * ((at - c) / SPOT_WIDTH) ** 2) for c in _CENTRES] for at in (x, y))
    grid = [one * other for one in along_x for other in along_y]
    return [*middle, far_x, far_y, np.maximum(far_x, far_y), *grid]


def _compare_colours(means: Array, areas: Array, on_border: Array, beside: Array) -> Array:
    """Differences of the colour of regions from the image, from its border, and from the neighbours."""
    image = (areas @ means) / areas.sum()
    border = (on_border @ means) / on_border.sum()
    outer = thin_out(np.flatnonzero(on_border > 0))
    nearest = np.sqrt(((means[:, None, :] - means[outer][None, :, :]) ** 2).sum(axis=2))
    nearest[outer, np.arange(len(outer))] = np.inf  # not its own
    closest = np.sort(nearest, axis=1)[:, : max(1, len(outer) // 8)]
    closest = np.where(np.isfinite(closest), closest, 0.0).mean(axis=1)
    order = np.argsort(means[:, 0], kind="stable")
    rank = np.empty(len(means))
    rank[order] = (np.cumsum(areas[order]) - 0.5 * areas[order]) / areas.sum()
    distances = [np.linalg.norm(means - border, axis=1), closest, np.linalg.norm(means - beside, axis=1), rank]
    return np.hstack([means - image, means - border, np.column_stack(distances)])


class Witnesses(NamedTuple):
    """Regions that stand for all regions of an image in sums over regions: these take time linear in the regions.

    ``chosen`` has their positions, at most `MAX_WITNESSES`, and ``owner`` the witness of each region: the nearest by
    colour, texture and location. Where there are no more regions, each is its own witness and sums are exact.
    """

    chosen: Array
    owner: Array

    def gather(self, amounts: Array) -> Array:
        """Amounts of regions, added up by witness."""
        k = len(self.chosen)
        columns = np.reshape(amounts, (len(self.owner), -1)).T
        return np.column_stack([np.bincount(self.owner, own, k) for own in columns])

    def sum_others(self, table: Array, amounts: Array) -> Array:
        """Per region i the sum over all other regions j of table[i, witness of j] · amounts[j].

        ``table`` has a row per region and a column per witness, ``amounts`` one or more columns.
        """
        own = table[np.arange(len(self.owner)), self.owner]
        found = table @ self.gather(amounts) - own[:, None] * np.reshape(amounts, (len(self.owner), -1))
        return np.asarray(np.maximum(found, 0.0).reshape(np.shape(amounts)))


def choose_witnesses(own: Array, x: Array, y: Array, areas: Array) -> Witnesses:
    """The largest regions, and others at equal steps.

    >>> found = choose_witnesses(np.zeros((3, 18)), np.arange(3.0), np.zeros(3), np.ones(3))
    >>> found.chosen, found.owner
    (array([0, 1, 2]), array([0, 1, 2]))
    """
    n = len(own)
    if n <= MAX_WITNESSES:
        return Witnesses(np.arange(n), np.arange(n))
    order = np.argsort(-areas, kind="stable")
    half = MAX_WITNESSES // 2
    chosen = np.sort(np.concatenate([order[:half], thin_out(np.sort(order[half:]), MAX_WITNESSES - half)]))
    scaled = np.column_stack([own[:, :3] / 0.1, own[:, 6:] / 0.15, x / 0.3, y / 0.3])
    owner = _squared_distances(scaled, scaled[chosen]).argmin(axis=1)
    owner[chosen] = np.arange(MAX_WITNESSES)
    return Witnesses(chosen, owner)


def thin_out(positions: Array, limit: int | None = None) -> Array:
    """At most ``limit`` of the positions (`MAX_WITNESSES` for None), at equal steps."""
    limit = MAX_WITNESSES if limit is None else limit
    if len(positions) <= limit:
        return positions
    return np.asarray(positions[np.arange(limit) * len(positions) // limit])


def _rate_salience(own: Array, location: Array, areas: Array, on_border: Array, edges: Array, regions: Array) -> Array:
    """Salience: locations of similar regions, and paths through the graph of regions.

    Background is similar to the border of the image and connected to it (Wei et al. 2012; Zhu et al. 2014), objects are
    compact and differ from their surroundings (Perazzi et al. 2012).
    """
    x, y = location[:, 0], location[:, 1]
    shares = areas / areas.sum()
    centre = shares * np.exp(-2 * (x**2 + y**2))
    centre, border = centre / centre.sum(), on_border / on_border.sum()
    witnesses = choose_witnesses(own, x, y, areas)
    alike, distance = similarity_kernels(own, witnesses.chosen)
    columns = []
    for kernel in alike:
        to_centre, to_border = witnesses.sum_others(kernel, np.column_stack([centre, border])).T
        columns.append(np.log((to_centre + 1e-3) / (to_border + 1e-3)))
    columns += [witnesses.sum_others(kernel, shares) for kernel in alike[:2]]
    places = np.column_stack([np.ones_like(x), x, y, x**2 + y**2, np.hypot(x, y), on_border > 0]) * shares[:, None]
    sums = alike[1] @ witnesses.gather(places)  # of similar regions and the region itself
    at_x, at_y, square, far, outer = sums[:, 1:].T / sums[:, 0]
    radius = np.sqrt(np.maximum(square - at_x**2 - at_y**2, 0))
    columns += [at_x, at_y, far, radius, outer]
    columns += _connections(own[:, :3], shares, centre, on_border, edges, witnesses)
    at = witnesses.chosen
    near = np.exp(-2 * ((x[:, None] - x[at]) ** 2 + (y[:, None] - y[at]) ** 2)) * witnesses.gather(shares)[:, 0]
    columns += [(near * distance).sum(axis=1) / near.sum(axis=1), distance @ witnesses.gather(shares)[:, 0]]
    return np.column_stack([*columns, *_ranks(own[:, :3], edges, regions)])


def _ranks(colour: Array, edges: Array, regions: Array) -> list[Array]:
    """Manifold ranking (Yang et al. 2013) by the sides of the image, the foreground that they leave, and ranking by
    that foreground."""
    n = len(colour)
    if n == 1 or not len(edges):
        return [np.ones(n)] * 4 + [np.zeros(n)] * 2
    rank = manifold_ranking(colour, edges)
    sides = (regions[0], regions[-1], regions[:, 0], regions[:, -1])
    found = rank(np.column_stack([np.bincount(side, minlength=n) > 0 for side in sides]))
    ranks = [to_unit(own) for own in found.T]
    foreground = np.prod([1 - own for own in ranks], axis=0)
    return [*ranks, foreground, to_unit(rank((foreground > foreground.mean())[:, None])[:, 0])]


def manifold_ranking(colour: Array, edges: Array) -> Callable[[Array], Array]:
    """The function that ranks regions by the seeds of each column, on the graph of neighbours and theirs.

    A region does not count as its own seed, so the diagonal of the inverse is taken off. It is exact for up to
    `MAX_WITNESSES` regions. For more it is estimated from as many solves with random signs (Bekas et al. 2007). Sparse
    factors keep time and memory near linear in the regions.
    """
    n = len(colour)
    near = sparse.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    near = near + near.T
    pairs = sparse.coo_array(sparse.triu(near + near @ near, 1))
    steps = np.linalg.norm(colour[pairs.row] - colour[pairs.col], axis=1)
    affinity = sparse.csr_array((np.exp(-steps / 0.2), (pairs.row, pairs.col)), shape=(n, n))
    affinity = affinity + affinity.T
    degrees = np.asarray(affinity.sum(axis=1)).ravel() + n * WEAK_LINK  # all regions are linked weakly
    factors = splu(sparse.csc_array(sparse.diags_array(degrees) - 0.99 * affinity))
    from_links = factors.solve(np.ones(n))
    scale = 0.99 * WEAK_LINK / (1 - 0.99 * WEAK_LINK * from_links.sum())

    def solve(seeds: Array) -> Array:
        found = factors.solve(np.asarray(seeds, dtype=np.float64))  # and the weak links by Sherman & Morrison
        return np.asarray(found + scale * from_links[:, None] * found.sum(axis=0))

    k = min(n, MAX_WITNESSES)
    rng = np.random.default_rng(0)
    group, sign = np.arange(n) % k, rng.choice([-1.0, 1.0], n)
    probes = np.zeros((n, k))
    probes[np.arange(n), group] = sign
    diagonal = solve(probes)[np.arange(n), group] * sign

    def rank(seeds: Array) -> Array:
        return np.asarray(solve(seeds) - diagonal[:, None] * seeds)

    return rank


def to_unit(values: Array) -> Array:
    """Values, scaled to 0 … 1."""
    return np.asarray((values - values.min()) / max(float(np.ptp(values)), 1e-12))


def _describe_segments(
    colours: Array, scale: int, regions: Array, sums: Any, areas: Array, pixels: Array, salience: Array
) -> Array:
    """Features of the large segments of an image, averaged over the pixels of every region."""
    from skimage.segmentation import felzenszwalb

    height, width = regions.shape
    segments = felzenszwalb(colours, scale=scale, sigma=0.8, min_size=50).ravel()
    n = int(segments.max()) + 1
    sizes = np.maximum(np.bincount(segments, minlength=n), 1).astype(np.float64)

    def mean(values: Array) -> Array:
        return np.asarray(np.bincount(segments, values, n) / sizes)

    rows, columns = (part.ravel() for part in np.mgrid[:height, :width])
    x, y = 2 * (columns + 0.5) / width - 1, 2 * (rows + 0.5) / height - 1
    at_border = (rows == 0) | (rows == height - 1) | (columns == 0) | (columns == width - 1)
    radius = np.sqrt(np.maximum(mean(x**2 + y**2) - mean(x) ** 2 - mean(y) ** 2, 0))
    own = np.column_stack([mean(pixels[:, j]) for j in range(4)])
    total = sizes @ own / sizes.sum()
    rest = (total * sizes.sum() - own * sizes[:, None]) / np.maximum(sizes.sum() - sizes, 1)[:, None]
    border = pixels[at_border, :3].mean(axis=0)
    flat = regions.ravel()
    found = np.column_stack(
        [
            *(0.5 * np.log(sizes / sizes.sum()), mean(at_border) * np.sqrt(sizes), mean(np.hypot(x, y)), radius),
            *(np.linalg.norm(own[:, :3] - border, axis=1), mean(salience[flat, 1]), mean(salience[flat, -2])),
            *(own - rest)[:, :3].T,
            own[:, 3],
        ]
    )
    return np.asarray((sums @ found[segments]) / areas[:, None])


def similarity_kernels(own: Array, chosen: Array) -> tuple[list[Array], Array]:
    """(n, k) each: similarities of regions to the chosen ones by each of `KERNELS`, and distances of colours.

    ``own`` has the features of the regions alone (`OWN_FEATURES`).
    """
    colour, texture = (_squared_distances(part, part[chosen]) for part in (own[:, :3], own[:, 6:]))
    colour[chosen, np.arange(len(chosen))] = texture[chosen, np.arange(len(chosen))] = 0.0
    squares = {"colour": colour, "texture": texture, "colour and texture": colour + texture}
    return [np.exp(-0.5 * squares[what] / width**2) for what, width in KERNELS], np.sqrt(colour)


def _squared_distances(rows: Array, others: Array) -> Array:
    """Squared distances of all rows from all others."""
    norms = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    return np.asarray(np.maximum(norms - 2 * rows @ others.T, 0))


def geodesic_distances(colour: Array, edges: Array, sources: Array, nearest: bool = False) -> Array:
    """(n, k) lengths of shortest paths through neighbours to the sources, in differences of colour; `FAR` without a
    path. With ``nearest``, (n,) to the nearest source."""
    n = len(colour)
    steps = np.linalg.norm(colour[edges[:, 0]] - colour[edges[:, 1]], axis=1)
    lengths = np.maximum(steps - 0.05, 0) + 1e-4  # small differences are noise
    graph = sparse.csr_array((lengths, (edges[:, 0], edges[:, 1])), shape=(n, n))
    if not len(sources):
        return np.full(n if nearest else (n, 0), FAR)
    paths = csgraph.dijkstra(graph, directed=False, indices=sources, min_only=nearest)
    return np.where(np.isfinite(paths), paths, FAR).T


def _connections(
    colour: Array, shares: Array, centre: Array, on_border: Array, edges: Array, witnesses: Witnesses
) -> list[Array]:
    """Lengths of paths to the border and to the centre of the image, in differences of colour; and boundary
    connectivity: the border of connected regions, relative to their size."""
    n = len(colour)
    paths = geodesic_distances(colour, edges, witnesses.chosen)
    closeness = np.exp(-0.5 * (paths / 0.3) ** 2)
    to_centre, border, size = (witnesses.gather(own)[:, 0] for own in (centre, on_border, shares * n))
    connected = np.log((closeness @ border + 1) / np.sqrt(closeness @ size))
    to_border = geodesic_distances(colour, edges, np.flatnonzero(on_border > 0), nearest=True)
    return [to_border, paths @ to_centre, connected]


def _compare_pairs(own: Array, edges: Array, lengths: Array, between: Array) -> Array:
    """Similarities of two neighbours, from 0 to 1, times the length of their border."""
    a, b = own[edges[:, 0]], own[edges[:, 1]]
    colour = ((a[:, :3] - b[:, :3]) ** 2).sum(axis=1)
    patterns: Any = slice(8, 8 + TEXTURES)
    texture = ((a[:, patterns] - b[:, patterns]) ** 2).sum(axis=1)
    falls = (colour / 0.2, colour / 0.02, texture / 0.1, between / 0.1)
    return np.column_stack([np.ones(len(edges)), *(np.exp(-fall) for fall in falls)]) * lengths[:, None]
