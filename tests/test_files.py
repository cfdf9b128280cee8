"""Files are written whole or not at all, and only regular files are replaced."""

import os
import stat
import threading

import numpy as np
import pandas as pd
import pytest

from structjax.errors import StructjaxError
from structjax.files import read_json, write_atomic
from structjax.forms import Each, Many, Maybe, mismatch
from structjax.table import Column, RolloutTable, load_table, save_table


def small_table():
    frame = pd.DataFrame({"obs_x": np.float32([1, 2])})
    return RolloutTable(frame, (Column("obs_x", "m", None, None, "x", "observation"),))


WRITERS = [
    lambda path: write_atomic(path, "whole"),
    lambda path: save_table(small_table(), path),
]


@pytest.mark.parametrize("write", WRITERS)
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path, write):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    received = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()
    write(path)
    reader.join(10)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert received[0][:4] in (b"whol", b"PAR1")
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("write", WRITERS)
def test_a_link_is_followed(tmp_path, write):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "file", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes()[:4] in (b"whol", b"PAR1")


def test_a_link_to_nothing_makes_the_file_it_names(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_atomic(tmp_path / "link", "whole")
    assert (tmp_path / "file").read_text() == "whole"


def test_a_name_of_the_longest_length_is_written(tmp_path):
    write_atomic(tmp_path / ("a" * 255), "whole")
    assert (tmp_path / ("a" * 255)).read_text() == "whole"


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("name", ["", ".", "/", "a" * 300, "no/such/file", "ring"])
def test_what_cannot_be_written_is_one_clear_line(tmp_path, monkeypatch, name, write):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    from pathlib import Path

    with pytest.raises(StructjaxError) as refused:
        write(Path(name))
    assert "cannot write" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert [p.name for p in tmp_path.iterdir()] == ["ring"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1", "Expecting"),
        (b"9" * 5000, "cannot read"),
    ],
)
def test_a_json_file_that_cannot_be_read_is_one_clear_line(tmp_path, content, problem):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(StructjaxError, match=problem):
        read_json(path)


@pytest.mark.parametrize(
    ("value", "form", "problem"),
    [
        (None, dict, "it is null, an object is accepted"),
        ({}, {"a": int}, "a is missing"),
        ({"a": True}, {"a": int}, "a is true, a whole number of at least 0"),
        ({"a": -1}, {"a": int}, "a is -1"),
        ({"a": 10**500}, {"a": float}, "a is 1000"),
        ({"a": float("nan")}, Each(float), "a is nan, a finite number"),
        ({"a": ["x", 3]}, {"a": [str]}, "a[1] is 3, a text"),
        ({"a": []}, Each(float), "a is a list, a finite number"),
        ([], Each(str), "it is a list, an object"),
        ({"a": [1.0]}, Each(Many(float, 2)), "a has 1 items, 2 are accepted"),
        ({"a": 1.0}, Each(Many(float, 2)), "a is 1.0, a list is accepted"),
        (["x", 1.0], Many(float, 2), "[0] is 'x', a finite number"),
        ({"a": {"b": None}}, {"a": {"b": str}}, "a.b is null, a text"),
    ],
)
def test_a_value_of_another_form_is_described(value, form, problem):
    assert mismatch(value, form).startswith(problem)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ({"a": 3, "more": None}, {"a": float}),
        ({}, {"a": Maybe(int)}),
        ({"a": None}, {"a": Maybe(int)}),
        ([[1, 2.5]], [[float]]),
        ({"anything": "x"}, Each(str)),
        ([1, 2.5], Many(float, 2)),
        (None, object),
    ],
)
def test_a_value_of_the_form_is_accepted(value, form):
    assert mismatch(value, form) == ""


def test_a_table_with_another_description_is_refused(tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "table.parquet"
    save_table(small_table(), path)
    arrow = pq.read_table(path)
    for text in ("null", "{", '{"version": 1}', '{"version": 1, "columns": 3}'):
        changed = arrow.replace_schema_metadata({"structjax_table": text})
        pq.write_table(changed, path)
        with pytest.raises(StructjaxError, match="description"):
            load_table(path)
