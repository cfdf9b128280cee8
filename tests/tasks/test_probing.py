"""What a user's own task does wrong is one line, before anything is played."""

from dataclasses import replace

import jax.numpy as jnp
import pytest
from toy import _step, toy_task

from structjax.errors import StructjaxError
from structjax.tasks.probing import check_task
from structjax.tasks.registry import make_task
from structjax.tasks.scene import Scene, Shape


def stepping(**changes):
    """The toy task with a step whose outputs are replaced."""

    def step(key, state, action, params):
        done = _step(key, state, action, params)
        return done._replace(**{k: f(done) for k, f in changes.items()})

    return toy_task(step)


def failing(*_):
    raise ZeroDivisionError("by hand")


def branching(key, state, action, params):
    if action[0] > 0:
        return _step(key, state, action, params)
    return _step(key, state, -action, params)


TASKS = {
    "`step` fails: ZeroDivisionError: by hand": toy_task(failing),
    "`step` fails: TracerBoolConversionError": toy_task(branching),
    "`step` returns a tuple": toy_task(lambda *_: ()),
    "`reset` fails: ZeroDivisionError": replace(toy_task(), reset=failing),
    "`initial` fails: ZeroDivisionError": replace(toy_task(), initial=failing),
    "gives starts of no array for 2": replace(
        toy_task(), initial=lambda seeds: ({}, ())
    ),
    r"gives starts of float32\[3\] for 2 seeds": replace(
        toy_task(), initial=lambda seeds: ({}, jnp.zeros(3))
    ),
    r"observation of `reset` is float32\[3\]; accepted: shape \[2\]": replace(
        toy_task(), reset=lambda start, params: (jnp.zeros(3), (start, start))
    ),
    r"reward of `step` is float32\[3\]": stepping(reward=lambda _: jnp.zeros(3)),
    r"observation of `step` is float32\[3\]": stepping(obs=lambda _: jnp.zeros(3)),
    r"state of `step` is float32\[\], int32\[\]; accepted: what": stepping(
        state=lambda done: (done.state[0], jnp.int32(3))
    ),
    r"gives no info value 'height'; accepted: distance": replace(
        toy_task(), info={"height": "above the floor"}
    ),
    r"the info of `step` is float32\[\]; accepted: a dict": stepping(
        info=lambda done: done.reward
    ),
    r"info value 'distance' of `step` is float32\[2\]": stepping(
        info=lambda _: {"distance": jnp.zeros(2)}
    ),
    r"info value 'distance' of `step` is a dict": stepping(
        info=lambda done: {"distance": done.info}
    ),
    r"info value 'distance' of `step` is complex64\[\]; accepted: a real": stepping(
        info=lambda _: {"distance": jnp.complex64(1j)}
    ),
    "`scene` fails: ZeroDivisionError: by hand": replace(toy_task(), scene=failing),
    "`scene` returns a dict; accepted: a Scene": replace(
        toy_task(), scene=lambda _: {"x": [0], "y": [0]}
    ),
    "no info value 'heading'; accepted: distance": replace(
        toy_task(),
        scene=lambda _: Scene((Shape("line", ((0, 0, 0),), "red", turn="heading"),)),
    ),
}


@pytest.mark.parametrize("words", TASKS)
def test_a_task_that_cannot_be_played_is_one_line(words):
    with pytest.raises(StructjaxError, match=words) as found:
        check_task(TASKS[words])
    assert found.value.kind == "task"
    assert "\n" not in str(found.value)


def test_tasks_that_can_be_played_pass():
    check_task(toy_task())
    check_task(stepping(reward=lambda _: jnp.int32(1), truncated=lambda _: False))
    for name in ("pendulum", "cartpole"):
        check_task(make_task(name))
