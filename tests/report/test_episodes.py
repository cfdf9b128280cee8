"""Scenes and outcomes in the page's player; its script is run where Node is present."""

import json
import math
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_refine import REPLIES
from toy import toy_task

import structjax.report
from structjax.errors import StructjaxError
from structjax.llm.scripted import ScriptedModel
from structjax.refinement import RefinementConfig
from structjax.report.episodes import episode_data, scene_data
from structjax.session import refine
from structjax.tasks.car_racing.task import car_racing
from structjax.tasks.door_open.configurations import door_position
from structjax.tasks.door_open.geometry import handle_position
from structjax.tasks.door_open.task import INFO, door_open
from structjax.tasks.scene import Scene, Shape, View

SCRIPT = Path(structjax.report.__file__).parent / "assets" / "scene.js"
HERE = ((0.0, 0.0, 0.0),)
node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


def computed(expression: str, **data):
    """A JavaScript expression over the page's functions and some data."""
    names = f"const {{ {', '.join(data)} }} = JSON.parse(process.argv[1]);"
    done = subprocess.run(
        ["node", "-e", f"{SCRIPT.read_text()}{names}"
         f"console.log(JSON.stringify({expression}))", json.dumps(data)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def shape_data(shape: Shape) -> dict:
    return scene_data(Scene((shape,)))["shapes"][0]


def table(**columns) -> pd.DataFrame:
    """Three episodes of two steps with returns 1, 3 and 2, then the columns given."""
    index = {"episode": [0, 0, 1, 1, 2, 2], "reward": [1.0, 0, 3, 0, 2, 0]}
    return pd.DataFrame({**index, **columns})


def scenic(scene: Scene, **changes):
    return replace(toy_task(), scene=lambda seed: scene, **changes)


FOLLOWS = Scene((Shape("line", HERE, "red", moves={"distance": (1.0, 0.0, 0.0)}),))


def test_worst_median_and_best_come_with_their_own_outcomes():
    task = replace(
        toy_task(),
        outcomes={"least": ("distance", "min"), "last": ("distance", "last")},
    )
    frame = table(info_distance=[0.25, 0.5, 4, 2, 8, 16])
    told = episode_data(frame, task, [1000, 1001, 1002])
    assert [(e["label"], e["seed"], e["return"]) for e in told] == [
        ("worst", 1000, 1.0),
        ("median", 1002, 2.0),
        ("best", 1001, 3.0),
    ]
    assert [e["outcomes"] for e in told] == [
        {"least": "0.25", "last": "0.5"},
        {"least": "8", "last": "16"},
        {"least": "2", "last": "2"},
    ]
    # One curve for the two outcomes of one value, and it is shown first.
    assert told[0]["first"] == ["info_distance"]
    assert told[0]["scene"] is None


def test_places_are_exact_to_a_tenth_of_a_millimetre_and_other_values_to_four_digits():
    far = [123.45678] * 6
    frame = table(info_distance=far, latent_demand=far)
    series = episode_data(frame, scenic(FOLLOWS), [1, 2, 3])[0]["series"]
    assert series["info_distance"] == [123.4568] * 2
    assert series["latent_demand"] == [123.5] * 2


def test_an_older_table_without_a_value_of_the_scene_has_no_picture():
    assert episode_data(table(), scenic(FOLLOWS), [1, 2, 3])[0]["scene"] is None


def test_an_older_table_is_drawn_without_what_it_does_not_hold():
    shapes = [
        Shape("line", HERE, "red", moves={name: (1, 0, 0)})
        for name in ("distance", "speed")
    ]
    task = replace(
        scenic(Scene((*shapes, Shape("line", HERE, "grey")))),
        info={"distance": "m", "speed": "m/s"},
    )
    frame = table(info_distance=[1, 2, 3, 4, 5, 6])
    scene = episode_data(frame, task, [1, 2, 3])[0]["scene"]
    assert [shape["colour"] for shape in scene["shapes"]] == ["red", "grey"]
    assert scene["shapes"][0]["moves"] == {"info_distance": [1.0, 0.0, 0.0]}


def test_a_scene_that_follows_no_info_value_is_refused():
    lost = Scene((Shape("line", HERE, "red", turn="heading"),))
    with pytest.raises(StructjaxError, match="'toy': no info value 'heading'") as error:
        episode_data(table(), scenic(lost), [1, 2, 3])
    assert error.value.hint == "accepted: distance"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Shape("cube", HERE, "red"), "of kind 'cube'"),
        (lambda: Shape("line", ((0.0, 0.0),), "red"), r"have the shape \(1, 2\)"),
        (lambda: Shape("line", HERE, "red", moves={"x": (1, 0)}), r"'x' of a line"),
        (lambda: Shape(["line"], HERE, "red"), r"of kind \['line'\]"),
        (lambda: Shape("line", ((float("nan"), 0, 0),), "red"), "accepted: finite"),
        (lambda: Shape("line", (("a", "b", "c"),), "red"), "accepted: finite"),
        (lambda: Shape("line", (HERE[0], (1,)), "red"), "accepted: finite"),
        (lambda: Shape("line", HERE, "red", moves=["x"]), "the moves of a line"),
        (lambda: Shape("line", HERE, "red", moves={3: HERE[0]}), "the moves of a line"),
        (lambda: Shape("line", HERE, "red", origin="abc"), "'origin' of a line"),
        (lambda: Shape("line", HERE, "red", width="thin"), "width of a line is 'thin'"),
        (lambda: Shape("line", HERE, "red", width=-1.0), "accepted: a number of at"),
        (lambda: Shape("line", HERE, (1, 0, 0)), "colour of a line is .1, 0, 0."),
        (lambda: Shape("line", HERE, "red", turn=["x"]), "turn of a line"),
        (lambda: View(3), "title of a view is 3"),
        (lambda: View("a", right=["x"]), "a view has axes"),
        (lambda: Scene(Shape("line", HERE, "red")), "its shapes are Shape"),
        (lambda: Scene((), views=("above",)), "its views are .'above'"),
        (lambda: Scene((), views=()), "it has no views"),
        (lambda: View("askew", "x", "x"), "axes 'x', 'x'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, words):
    with pytest.raises(StructjaxError, match=words):
        make()


@node
def test_numbers_of_a_shape_may_be_arrays():
    """The page is JSON, which knows no array."""
    one, vector = np.float32(1.0), np.array([0.0, 2.0, 0.0])
    moves = {"distance": np.zeros(3)}
    shape = Shape(
        "line", HERE, "red", one, dashed=np.bool_(True), origin=vector, moves=moves
    )
    found = json.loads(json.dumps(scene_data(Scene((shape,)))))["shapes"][0]
    assert (found["width"], found["dashed"]) == (1.0, True)
    assert found["origin"] == [0.0, 2.0, 0.0]
    assert found["moves"] == {"info_distance": [0.0, 0.0, 0.0]}


def test_a_shape_turns_about_its_origin_and_moves_with_values():
    shape = Shape(
        "line", ((1, 0, 0), (0, 2, 1)), "red", origin=(10, 20, 30), turn="angle",
        moves={"lift": (0, 0, 2), "push": (-1, 0, 0)},
    )  # fmt: skip
    series = {"info_angle": [0, math.pi / 2], "info_lift": [0, 3], "info_push": [0, 5]}
    expression = "shape.points.map(p => placed(shape, p, series, 1))"
    found = computed(expression, shape=shape_data(shape), series=series)
    # A quarter turn takes (1, 0) to (0, 1) and (0, 2) to (-2, 0).
    assert np.allclose(found, [[5, 21, 36], [3, 20, 37]])
    view = {"title": "", "right": "y", "up": "z"}
    expression = "projected(view, shape, series, 0)"
    found = computed(expression, view=view, shape=shape_data(shape), series=series)
    assert found == [[20, 30], [22, 31]]


@node
def test_a_view_holds_everything_that_happens_in_it():
    moving = Shape("line", HERE, "red", moves={"distance": (1, 0, 0)})
    ring = Shape("ring", HERE, "red", 2.0)
    scene = scene_data(Scene((moving, ring)))
    series = {"info_distance": [0, 3, 9]}
    find = "extent(scene.views[0], scene, series, 3)"
    assert computed(find, scene=scene, series=series) == [-1, 9, -1, 1]
    # 10 m in 400 - 2 * 20 pixels; the height follows, and up is up.
    place = "(f => [f.scale, f.height, f.at([-1, -1]), f.at([9, 1])])(fitted(box, 400))"
    found = computed(place, box=[-1, 9, -1, 1])
    assert found == [36, 112, [20, 92], [380, 20]]


DRAWN = """(() => {
  const dots = [], pen = new Proxy({}, {
    get: (_, name) => (...args) => { if (name === "arc") dots.push(args.slice(0, 3)); },
    set: () => true,
  });
  const canvas = { clientWidth: 340, style: {}, getContext: () => pen };
  globalThis.window = {};
  const plan = prepared(episode.scene.views[0], episode);
  for (const step of [0, 1]) drawView(canvas, plan, episode, step);
  return dots;
})()"""


@node
def test_drawn_steps_differ_as_the_values_do():
    place = {"distance": (1.0, 0.0, 0.0)}
    scene = Scene(
        (
            Shape("loop", ((0, 0, 0), (3, 0, 0), (3, 1, 0)), "grey"),
            Shape("trace", HERE, "blue", moves=place),
            Shape("line", HERE, "red", 0.1, moves=place),
        )
    )
    frame = table(info_distance=[0, 3, 0, 0, 0, 0])
    episode = episode_data(frame, scenic(scene), [1, 2, 3])[0]
    # 3 m in 300 pixels beside a margin of 20; 1 m of height: the ground is at 120.
    assert computed(DRAWN, episode=episode) == [[20, 120, 5], [320, 120, 5]]


def test_the_door_scene_follows_values_that_the_task_has():
    scene = door_open().scene(1003)
    assert scene.values <= INFO.keys()
    assert [(v.right, v.up) for v in scene.views] == [("x", "y"), ("y", "z")]
    target = next(s for s in scene.shapes if "target" in s.label)
    assert target.values == {"target_x", "target_y", "target_z"}


@node
@pytest.mark.parametrize("theta", [0.0, -0.7, -1.6])
def test_the_drawn_bar_carries_the_handle_that_the_environment_reports(theta):
    shapes = scene_data(door_open().scene(1003))["shapes"]
    bar, dot = (next(s for s in shapes if s["label"] == n) for n in ("bar", "handle"))
    place = handle_position(door_position(1003), theta)
    series = {f"info_handle_{axis}": [float(place[i])] for i, axis in enumerate("xyz")}
    series["info_theta"] = [theta]
    drawn = "shapes.map(s => s.points.map(p => placed(s, p, series, 0)))"
    (start, end), (handle,) = map(
        np.array, computed(drawn, shapes=[bar, dot], series=series)
    )
    assert np.allclose(handle, place)
    length = np.linalg.norm(end - start)
    along = (end - start) / length
    assert 0 < (handle - start) @ along < length
    assert np.linalg.norm(np.cross(handle - start, along)) < bar["width"] / 2


@node
def test_the_claws_are_as_far_apart_as_the_gripper_is_open():
    shapes = scene_data(door_open().scene(1000))["shapes"]
    claws = [s for s in shapes if "info_opening" in s["moves"]]
    series = {f"info_hand_{axis}": [0.5] for axis in "xyz"} | {"info_opening": [0.6]}
    find = "claws.map(s => placed(s, s.points[0], series, 0)[1])"
    first, second = computed(find, claws=claws, series=series)
    # An opening of 1 is a gap of 0.1 m.
    assert (first, second) == pytest.approx((0.47, 0.53))


@node
def test_the_car_points_where_it_heads():
    scene = scene_data(car_racing().scene(1000))
    arrow = scene["shapes"][-1]
    series = {"info_position_x": [100], "info_position_y": [50]}
    series["info_heading"] = [math.pi / 2]  # 0 is north, positive to the left: west
    find = "placed(arrow, arrow.points[0], series, 0)"
    nose = computed(find, arrow=arrow, series=series)
    assert nose[0] < 100
    assert nose[1] == pytest.approx(50)


class Page(HTMLParser):
    """What a page links to, and its script elements."""

    def __init__(self, text):
        super().__init__()
        self.links, self.scripts, self.inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href") and v[:1] != "#"]
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


def test_a_page_holds_scene_script_and_outcomes_and_fetches_nothing(tmp_path):
    task = scenic(FOLLOWS, outcomes={"least": ("distance", "min")})
    config = RefinementConfig(rounds=0)
    outcome = refine(
        task, ScriptedModel(REPLIES), config=config, directory=tmp_path / "run"
    )
    page = Page((outcome.run / "report.html").read_text())
    assert page.links == []
    data, code = page.scripts
    assert SCRIPT.read_text() in code
    best = json.loads(data)[-1]
    # The best start is 0, from where nothing moves.
    assert best["outcomes"] == {"least": "0"}
    assert best["scene"]["shapes"][0]["moves"] == {"info_distance": [1.0, 0.0, 0.0]}
    assert len(best["series"]["info_distance"]) == best["steps"] == 5
