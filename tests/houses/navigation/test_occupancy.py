"""Connected parts against scipy's labels."""

import numpy as np
import scipy.ndimage

from memenvs.houses.navigation.occupancy import label_islands


def test_islands_are_connected_parts_from_the_largest_on():
    for seed in range(5):
        free = np.random.default_rng(seed).random((30, 41)) < 0.55
        islands, sizes = label_islands(free)
        labels, count = scipy.ndimage.label(free)
        assert len(sizes) == count
        assert np.array_equal(islands < 0, ~free)
        # The same partition: pairs of both labels are a bijection.
        pairs = np.unique(np.stack([islands[free], labels[free]]), axis=1)
        assert pairs.shape[1] == count
        assert sizes.tolist() == [(islands == number).sum() for number in range(count)] == sorted(sizes, reverse=True)
    islands, sizes = label_islands(np.zeros((3, 3), bool))
    assert (islands == -1).all() and len(sizes) == 0
