"""Which options a run may be continued with."""

import pytest

from structjax.errors import StructjaxError
from structjax.runs import RunDirectory


def test_another_config_is_refused_with_the_difference(tmp_path):
    config = {"rounds": 3}
    with RunDirectory.create(
        tmp_path / "run", kind="refine", task="car", config=config
    ):
        pass
    with (
        pytest.raises(StructjaxError, match="rounds: 3 there, 4 now"),
        RunDirectory.resume(tmp_path / "run", config={"rounds": 4}),
    ):
        pass


def test_a_run_that_was_begun_before_an_option_existed_goes_on(tmp_path):
    path = tmp_path / "run"
    old = {"fit": {"restarts": 8}}
    with RunDirectory.create(path, kind="refine", task="car", config=old):
        pass
    defaults = {"mapping": "vmap", "fit": {"race": True, "restarts": 1}}
    now = {"mapping": "vmap", "fit": {"restarts": 8, "race": True}}
    with RunDirectory.resume(path, config=now, defaults=defaults):
        pass
    changed = {**now, "mapping": "map"}
    with (
        pytest.raises(StructjaxError, match="mapping: 'vmap' there, 'map' now"),
        RunDirectory.resume(path, config=changed, defaults=defaults),
    ):
        pass


def test_long_paths_that_differ_at_their_end_are_told_apart(tmp_path):
    path, folder = tmp_path / "run", "/a" * 50
    config = {"start": f"{folder}/first.json", "numbers": [7] * 50}
    with RunDirectory.create(path, kind="refine", task="toy", config=config):
        pass
    other = {"start": f"{folder}/second.json", "numbers": [8] * 50}
    with (
        pytest.raises(StructjaxError) as caught,
        RunDirectory.resume(path, config=other),
    ):
        pass
    assert "/first.json' there, ..." in str(caught.value)
    assert "/second.json' now" in str(caught.value)
    assert "numbers: [7, 7, " in str(caught.value)
