"""Ids of both kinds: what is taken, what is refused and in which words, and how they are ordered and found."""

from __future__ import annotations

import enum
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashlearn.search import ids as ids_module
from hashlearn.search.ids import (
    ID_TYPES,
    INTEGER,
    TEXT,
    are_found,
    as_objects,
    checked_id_type,
    checked_ids,
    empty_ids,
    ids_at,
    no_ids,
    order_of,
    rows_in_any_order,
    rows_of,
    shown,
    type_of,
)
from tests.search.codes import engine, some_ids

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
LISTS = {
    INTEGER: st.lists(st.integers(0, 2**63 - 1), unique=True, max_size=30),
    TEXT: st.lists(TEXTS, unique=True, max_size=30),
}


class DriverUUID(uuid.UUID):
    """As some drivers of databases have."""


class Color(str, enum.Enum):  # noqa: UP042  (str() of it is not its text)
    RED = "red"


@pytest.mark.parametrize("id_type", ID_TYPES)
@settings(max_examples=20)
@given(data=st.data())
def test_ids_come_back_as_they_are(id_type: str, data: Any) -> None:
    values = data.draw(LISTS[id_type])
    ids = checked_ids(values, len(values), id_type)
    assert ids.tolist() == values
    assert ids.dtype == (np.int64 if id_type == INTEGER else object)
    if values:
        assert type_of(ids) == id_type
        assert {type(item) for item in ids.tolist()} == {type(values[0])}


@pytest.mark.parametrize("id_type", ID_TYPES)
@pytest.mark.parametrize("share", [1, 10**9])
@settings(max_examples=20)
@given(data=st.data())
def test_order_and_rows(id_type: str, share: int, data: Any) -> None:
    """As Python sorts and finds; ``share`` makes all look-ups bisections, or all of them dictionaries."""
    values, others = data.draw(LISTS[id_type]), data.draw(LISTS[id_type])
    ids = checked_ids(values, id_type=id_type)
    wanted = checked_ids(list(dict.fromkeys([*values[::2], *others])), id_type=id_type)
    ordered = ids[order_of(ids)]
    assert ordered.tolist() == sorted(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids_module, "DICTIONARY_SHARE", share)
        rows = rows_of(wanted, ordered)
    expected = {item: row for row, item in enumerate(sorted(values))}
    assert rows.tolist() == [expected.get(item, -1) for item in wanted.tolist()]
    assert ids_at(ordered, rows).tolist() == [
        item if item in expected else (-1 if id_type == INTEGER else None) for item in wanted.tolist()
    ]
    places = rows_in_any_order(wanted, ids)
    assert places.tolist() == [values.index(item) if item in expected else -1 for item in wanted.tolist()]


def test_text_is_ordered_by_code_points() -> None:
    texts = ["\U0001f600", "～", "é", "zz", "a", "Z"]  # in UTF-16 the first would come before the second
    assert order_of(as_objects(texts)).tolist() == [5, 4, 3, 2, 1, 0]
    assert sorted(texts, key=str.encode) == texts[::-1]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.array([3, 1], np.uint8), [3, 1]),
        (np.array(["b", "a"]), ["b", "a"]),
        (np.array(["b", "a"], object), ["b", "a"]),
        ([np.int32(3), 1], [3, 1]),
        ([np.str_("b"), "a"], ["b", "a"]),
        ([Color.RED, "a"], ["red", "a"]),
        ([DriverUUID(int=5), uuid.UUID(int=4), "a"], [str(uuid.UUID(int=5)), str(uuid.UUID(int=4)), "a"]),
        (range(2), [0, 1]),
        ((7,), [7]),
        ({"only"}, ["only"]),
        ("only", ["only"]),
        (7, [7]),
        (uuid.UUID(int=1), [str(uuid.UUID(int=1))]),
        ([2**63 - 1, 0], [2**63 - 1, 0]),
        (["it's", 'say "no"', "two\nlines", " ", "\t", "NULL", "x" * 2000], None),
    ],
)
def test_forms_of_ids(given: Any, expected: Any) -> None:
    found = checked_ids(given)
    assert found.tolist() == (given if expected is None else expected)
    assert {type(item) for item in found.tolist()} <= {int, str}


def test_columns_of_pandas_polars_and_arrow() -> None:
    values = ["b", "a'\n"]
    assert checked_ids(engine("pandas").Series(values)).tolist() == values
    assert checked_ids(engine("polars").Series(values)).tolist() == values
    assert checked_ids(engine("pyarrow").array(values)).tolist() == values
    with pytest.raises(ValueError, match="must not be missing, got None at place 1"):
        checked_ids(engine("pyarrow").array([1, None]))
    with pytest.raises(TypeError, match="integers become floats where one is missing: fill or drop those rows"):
        checked_ids(engine("pandas").Series([1, None]))


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        ([3, 4, 3], ValueError, r"ids must be distinct, got 3 more than once"),
        (["a", "b", "b", "a"], ValueError, r"ids must be distinct, got 'a' more than once"),
        ([uuid.UUID(int=1)] * 2, ValueError, r"distinct, got '00000000-0000-0000-0000-000000000001'"),
        ([1, "1"], TypeError, r"all of one kind, got int at place 0 and str at place 1"),
        ([1, 2, uuid.UUID(int=1)], TypeError, r"all of one kind, got int at place 0 and UUID at place 2"),
        (
            [2**63],
            ValueError,
            r"from 0 to 2\*\*63 - 1 if they are integers, got 9223372036854775808; give others as text",
        ),
        ([2**200], ValueError, r"from 0 to 2\*\*63 - 1"),
        (np.array([2**63], np.uint64), ValueError, r"from 0 to 2\*\*63 - 1"),
        ([1, -1], ValueError, r"got -1; give others as text, because -1 stands for nothing found"),
        (["a", ""], ValueError, r"ids must not be empty text, .* got '' of 0 bytes at place 1"),
        (["a", "b\0"], ValueError, r"without NUL characters, got 'b\\x00' at place 1"),
        (["a\ud800"], ValueError, r"valid Unicode text, got a lone surrogate"),
        (["é" * 1001], ValueError, r"at most 2,000 bytes, got 'é.* of 2,002 bytes at place 0"),
        ([True, False], TypeError, r"ids must be integers or text, got bool at place 0"),
        (np.array([True]), TypeError, r"got dtype bool"),
        ([1.0], TypeError, r"got float at place 0"),
        ([b"a"], TypeError, r"got bytes at place 0; decode bytes to text, or make a UUID of 16 bytes"),
        (np.array([b"a"]), TypeError, r"decode bytes to text"),
        (["a", None], ValueError, r"ids must not be missing, got None at place 1"),
        ([[1, 2], [3, 4]], TypeError, r"got list at place 0"),
        (np.zeros((2, 2), int), ValueError, r"1 dimension"),
        ({"a": 1}, TypeError, r"got dict at place 0"),
    ],
)
def test_bad_ids_are_refused_in_words(bad: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        checked_ids(bad)


def test_other_counts_and_kinds_than_expected_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one entry for each of the 3 code\(s\), got 2"):
        checked_ids(["a", "b"], 3)
    with pytest.raises(TypeError, match=r"ids must be text, as those that are stored, got integers: 1"):
        checked_ids([1], id_type=TEXT)
    assert checked_ids(["a", "a"], distinct=False).tolist() == ["a", "a"]
    with pytest.raises(ValueError, match=r"did you mean 'string'\?"):
        checked_id_type("strings")
    for id_type in ID_TYPES:
        assert checked_ids([], 0, id_type).dtype == empty_ids(id_type).dtype


def test_places_without_an_id() -> None:
    for id_type in ID_TYPES:
        assert not are_found(no_ids((2, 3), id_type)).any()
        ids = checked_ids(some_ids(id_type, 4))
        assert are_found(ids).all()
        assert are_found(ids_at(ids, np.array([[2, -1]]))).tolist() == [[True, False]]
    assert ids_at(empty_ids(INTEGER), np.array([-1])).tolist() == [-1]


def test_long_ids_are_cut_in_messages() -> None:
    assert shown("it's") == '"it\'s"'
    assert len(shown("x" * 2000)) < 90
    assert shown(np.int64(3)) == "3"
