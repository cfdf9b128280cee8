"""Fixtures of the task tests."""

import pytest
from car_simulator import Simulator, make_simulator


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("tracks"))


@pytest.fixture(scope="module")
def simulator(cache_dir: str) -> Simulator:
    return make_simulator(cache_dir)
