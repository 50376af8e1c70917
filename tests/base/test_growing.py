import numpy as np

from checkrein.base.growing import Growing


def test_rows_come_back_in_their_order_and_earlier_views_stay_as_they_were():
    rows = np.random.default_rng(0).normal(size=(100, 3))
    growing, views = Growing(3), []
    for row in rows:
        growing.append(row)
        views.append(growing.rows)
    assert all(np.array_equal(view, rows[: i + 1]) for i, view in enumerate(views))
