"""What is written as TOML is read back as it was."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from checkrein.base.toml import written

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
PLAIN = st.one_of(st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False), TEXTS)
VALUES = st.one_of(PLAIN, st.lists(PLAIN, max_size=3))
TABLES = st.dictionaries(TEXTS, VALUES, max_size=3)


@given(st.dictionaries(TEXTS, st.one_of(VALUES, TABLES, st.lists(TABLES, min_size=1, max_size=2)), max_size=4))
def test_content_comes_back(content):
    assert tomllib.loads(written(content)) == content


def test_what_is_none_is_left_out():
    assert written({"a": None, "b": {"c": None, "d": 1}}) == "[b]\nd = 1\n"
