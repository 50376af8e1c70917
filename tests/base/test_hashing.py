"""Hashes go by value and order, and different things hardly ever have the same."""

import numpy as np

from checkrein.base.hashing import hashed, hashed_text, joined, sequences


def test_equal_numbers_have_equal_hashes_whatever_their_type():
    assert np.array_equal(hashed(np.array([0, 1, 5])), hashed(np.array([-0.0, 1.0, 5.0])))
    assert np.array_equal(hashed(np.array([True, False])), hashed(np.array([1, 0], np.int32)))


def test_large_integers_that_floats_cannot_tell_apart_differ():
    assert len(set(hashed(np.array([2**60, 2**60 + 1, 2**60 + 2])))) == 3


def test_columns_words_and_sequences_depend_on_their_order():
    one, other = hashed(np.arange(5)), hashed(np.arange(5) + 9)
    assert not np.array_equal(joined(one, other), joined(other, one))
    assert hashed(np.array([[1, 2]]))[0] != hashed(np.array([[2, 1]]))[0]
    assert len(set(hashed_text(np.array(["ab", "ba", "a", "", "abc"])))) == 5
    rows, begins = hashed(np.array([1, 2, 2, 1, 1, 2, 1])), np.array([0, 2, 4, 6])
    found = sequences(rows, begins, np.array([2, 2, 2, 1]))
    assert found[0] == found[2]
    assert len(set(found)) == 3


def test_a_word_has_its_hash_beside_longer_ones():
    assert hashed_text(np.array(["ab"]))[0] == hashed_text(np.array(["ab", "a much longer word"]))[0]


def test_many_hashes_do_not_collide_and_chunks_do_not_matter():
    rows = np.random.default_rng(0).integers(0, 50, (300_000, 6))
    different = np.unique(rows, axis=0)
    assert np.unique(hashed(different)).size == len(different)
    assert np.array_equal(hashed(rows)[-10:], hashed(rows[-10:]))
    words = np.array([f"episode {one}" for one in range(200_000)])
    assert np.unique(hashed_text(words)).size == words.size


def test_hashes_stay_what_they_are_because_they_are_kept_on_disk():
    found = [
        *hashed_text(np.array(["Ada", "Bée"])),
        *hashed(np.array([[1, 2.5]])),
        *sequences(hashed(np.arange(3)), np.array([0]), np.array([3])),
    ]
    assert [f"{one:016x}" for one in found] == [
        "d8050fd86167a31a",
        "7516b1b44afa7ae3",
        "c7dada783711c6ae",
        "e9738d05290b7dd9",
    ]
