"""Large photos are segmented at a working size, and sums over regions are estimated from witnesses."""

import numpy as np
import pytest
from PIL import Image

from tacit import regions
from tacit.apps import Segmenter
from tacit.vision.regions import features
from tacit.vision.regions.working_size import enlarge_labels, shrink_labels


def photo(rng, shape=(90, 120), left=30):
    """A bright disc on a dark ground, with noise; and its mask."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    unit = shape[1] / 120
    mask = np.hypot(rows - shape[0] / 2, columns - (left + 25) * unit) < 22 * unit
    image = rng.random((*shape, 3)) * 0.25
    image[mask] += 0.6
    return np.round(255 * image).astype(np.uint8), mask


def overlap(one, other):
    return (one & other).sum() / (one | other).sum()


def test_masks_have_the_size_of_their_photos():
    rng = np.random.default_rng(0)
    pairs = [photo(rng, (450, 600), left) for left in (20, 30, 40, 50, 35, 45)]
    masks = [mask if i < 4 else None for i, (_, mask) in enumerate(pairs)]
    boxes = np.full((6, 4), np.nan)
    boxes[4] = [170, 110, 420, 340]
    app = Segmenter(max_side=120, verbose=0).fit([image for image, _ in pairs], masks, boxes)
    found = app.predict([image for image, _ in pairs[4:]])
    assert all(own.shape == (450, 600) for own in found)
    assert min(overlap(own, mask) for own, (_, mask) in zip(found, pairs[4:], strict=True)) > 0.95


def test_time_does_not_depend_on_the_resolution_since_regions_do_not():
    rng = np.random.default_rng(1)
    small = photo(rng)[0]
    large = np.asarray(Image.fromarray(small).resize((960, 720), Image.Resampling.BICUBIC))
    counts = [int(regions(image, max_side=120, verbose=0).lengths[0]) for image in (small, large)]
    assert counts[1] <= 1.5 * counts[0]
    with pytest.raises(ValueError, match="max_side"):
        regions(small, max_side=3)


def test_enlarged_masks_follow_the_edges_of_the_photo():
    rng = np.random.default_rng(2)
    image, mask = photo(rng, (360, 480))
    small = mask[4::8, 4::8]
    blocks = small.repeat(8, axis=0).repeat(8, axis=1)
    assert overlap(enlarge_labels(image, small), mask) > overlap(blocks, mask) + 0.02
    classes = enlarge_labels(image, np.where(small, 5, 2))
    assert np.array_equal(np.unique(classes), [2, 5])
    assert np.array_equal(enlarge_labels(image, mask), mask)  # of full size already


def test_labels_are_shrunk_with_the_photo():
    image, mask = photo(np.random.default_rng(3), (360, 480))
    graphs = regions(image, max_side=120, verbose=0)
    masks, boxes = shrink_labels(graphs, [(360, 480)], [mask], [[40, 80, 120, 160]])
    assert masks[0].shape == graphs.maps[0].shape == (90, 120)
    assert boxes.tolist() == [[10, 20, 30, 40]]
    of_class = shrink_labels(graphs, [(360, 480)], [None], [{"cow": [[40, 80, 120, 160]]}])[1]
    assert of_class[0]["cow"].tolist() == [[10, 20, 30, 40]]


def plain_salience(own, x, y, areas):
    """The sum over all other regions, in plain loops: similarity of colour times share."""
    shares = areas / areas.sum()
    out = np.zeros(len(own))
    for i in range(len(own)):
        for j in range(len(own)):
            if i != j:
                out[i] += np.exp(-0.5 * ((own[i, :3] - own[j, :3]) ** 2).sum() / 0.3**2) * shares[j]
    return out


@pytest.mark.parametrize(("n", "least"), [(40, 1 - 1e-12), (500, 0.95)])
def test_sums_over_witnesses(n, least):
    """Exact where every region is its own witness, near otherwise."""
    rng = np.random.default_rng(4)
    own, (x, y), areas = rng.random((n, 18)), rng.uniform(-1, 1, (2, n)), rng.gamma(1.0, size=n)
    witnesses = features.choose_witnesses(own, x, y, areas)
    assert len(witnesses.chosen) == min(n, features.MAX_WITNESSES)
    kernel = features.similarity_kernels(own, witnesses.chosen)[0][1]
    found = witnesses.sum_others(kernel, areas / areas.sum())
    assert np.corrcoef(found, plain_salience(own, x, y, areas))[0, 1] >= least


@pytest.mark.parametrize(("side", "least"), [(9, 1 - 1e-9), (24, 0.98)])
def test_manifold_ranking_against_the_dense_inverse(side, least):
    rng = np.random.default_rng(5)
    n = side * side
    at = np.arange(n).reshape(side, side)
    edges = np.concatenate(
        [np.column_stack([at[:, :-1].ravel(), at[:, 1:].ravel()]), np.column_stack([at[:-1].ravel(), at[1:].ravel()])]
    )
    colour = rng.random((n, 3))
    is_near = np.zeros((n, n))
    is_near[edges[:, 0], edges[:, 1]] = is_near[edges[:, 1], edges[:, 0]] = 1
    is_near = (is_near + is_near @ is_near) > 0
    np.fill_diagonal(is_near, False)
    distance = np.linalg.norm(colour[:, None] - colour, axis=2)
    affinity = np.where(is_near, np.exp(-distance / 0.2), 0.0) + 1e-9
    inverse = np.linalg.inv(np.diag(affinity.sum(axis=1)) - 0.99 * affinity)
    np.fill_diagonal(inverse, 0)
    seeds = (rng.random((n, 2)) < 0.1).astype(float)
    found = features.manifold_ranking(colour, edges)(seeds)
    for one, other in zip(found.T, (inverse @ seeds).T, strict=True):
        assert np.corrcoef(one, other)[0, 1] >= least


def test_what_is_not_an_image_is_refused():
    with pytest.raises(ValueError, match="pixels"):
        regions([np.zeros(3)])
