"""Ask of a calculator that it grows, or shrinks, in each of its arguments."""

import math

from hypothesis import strategies as st

positive = st.floats(1e-3, 1e3)
counts = st.integers(1, 200)
discounts = st.floats(0.05, 0.99)
deltas = st.floats(1e-6, 0.9)


def moved(calculate, arguments, name, factor=2):
    """The result before and after an argument is moved up (a share halfway to 1, anything else by a factor)."""
    value = arguments[name]
    share = name in {"discount", "delta"}
    after = calculate(**arguments | {name: (1 + value) / 2 if share else value * factor})
    return calculate(**arguments), after


def require_growing(calculate, arguments, names):
    for name in names:
        before, after = moved(calculate, arguments, name)
        assert after >= before or math.isclose(after, before, rel_tol=1e-9), (name, before, after)


def require_shrinking(calculate, arguments, names):
    for name in names:
        before, after = moved(calculate, arguments, name)
        assert after <= before or math.isclose(after, before, rel_tol=1e-9), (name, before, after)
