from __future__ import annotations

import numpy as np
import pytest

from ratings.engine.board import rate
from ratings.engine.comparisons import FIRST, SECOND, TIE
from ratings.engine.slices import slice_counts, slices
from tests.engine.helpers import from_cells, quickstart, shared_json


def test_published_log_has_one_category_to_rate() -> None:
    published = shared_json("reference/orq_quickstart.json")
    names = published["category_counts_rated"]
    found = slices({category: quickstart(category)[1] for category in names})

    assert {one.category: one.comparisons for one in found} == names
    assert [one.category for one in found if not one.too_thin] == list(published["bradley_terry_by_category_min_20"])
    general = next(one for one in found if one.board)
    assert general.board is not None
    # Its published values are of an unfinished iteration: one candidate was never beaten in it.
    assert general.board.open_above.any()
    assert general.board.ridge_by_default
    assert np.isinf(general.board.upper[general.board.open_above]).all()


def test_a_slice_is_rated_from_its_own_comparisons() -> None:
    rows = [
        ("code", 0, 1, FIRST, 12),
        ("prose", 0, 1, SECOND, 15),
        ("code", 1, 0, FIRST, 7),
        ("prose", 0, 1, FIRST, 4),
        ("code", 1, 2, TIE, 1),
    ]
    code, prose = slices(slice_counts(3, rows))
    expected = rate(from_cells(3, [(0, 1, 12, 7, 0), (1, 2, 0, 0, 1)]))

    assert (code.category, code.comparisons, code.too_thin) == ("code", 20, False)
    assert code.board is not None
    np.testing.assert_array_equal(code.board.rating, expected.rating)
    np.testing.assert_array_equal(code.board.lower, expected.lower)
    assert (prose.category, prose.comparisons, prose.board) == ("prose", 19, None)


def test_the_minimum_counts_ties() -> None:
    counts = {"all ties": from_cells(2, [(0, 1, 0, 0, 20)])}
    (found,) = slices(counts, ties="rao_kupper")

    assert found.board is not None
    assert found.board.open_above.all()
    assert slices(counts, minimum=21)[0].too_thin


def test_no_categories_and_bad_minimum() -> None:
    assert slices({}) == ()
    assert slice_counts(2, []) == {}
    with pytest.raises(ValueError, match="at least 1"):
        slices({}, minimum=0)
    with pytest.raises(ValueError, match="Unknown outcome"):
        slice_counts(2, [("code", 0, 1, "draw", 1)])
