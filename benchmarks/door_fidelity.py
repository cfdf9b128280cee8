"""Door Opening: how far results in each backend agree with Meta-World.

    python benchmarks/door_fidelity.py play BACKEND SET ROWS.npz
    python benchmarks/door_fidelity.py compare META-WORLD.npz ROWS.npz [ROWS.npz ...]

`play` runs scripted policies closed loop in one backend, in whichever environment has
it (Meta-World needs its own), and writes what came of each episode; `compare` sets such
files beside Meta-World's. Policies are Meta-World's scripted expert with every constant
perturbed; all backends get the same action noise.

    backends  metaworld; metaworld-any-mujoco, patched to load on other versions;
              metaworld-nudged, its start moved by 1e-6 rad; c, mjx, our MJCF;
              c-jointed, with the whole arm; c-five-substeps, c-no-base, c-no-tilt, c
              with one thing changed; analytic
    sets      tuning: model parameters may be chosen on it
              held-out, held-out-2: each looked at once, when nothing is left to choose

Agreement: share of episodes in which both or neither ever succeed.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

STEPS = 300
NOISE = 0.15
SUCCESS, DISTANCE = "success", "distance"
Play = Callable[["Policies", np.ndarray, list[int]], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class CaseSet:
    """Policies and the seeds that they play, each policy two of its own.

    Attributes:
      policies: how many.
      policy_seed: of their constants.
      seeds: door positions; twice as many as policies.
    """

    policies: int
    policy_seed: int
    seeds: range


SETS = {
    "tuning": CaseSet(100, 51, range(5000, 5200)),
    "held-out": CaseSet(60, 61, range(6000, 6120)),
    "held-out-2": CaseSet(60, 62, range(6200, 6320)),
}


class Policies(NamedTuple):
    """Constants of B scripted policies, `[B, ...]` each.

    The hand goes above the handle, then down beside it, then pulls: the point it heads
    for is the handle plus `above`, `beside` or `pull`.

    Attributes:
      above, beside, pull: `[B, 3]` m.
      radius: from above, nearer than this the hand goes down, m.
      height: lower than this above the handle the hand pulls, m.
      gain: of the action on the distance, 1/m.
      grip: +1 closes, -1 opens.
      speed: largest action.
    """

    above: np.ndarray
    beside: np.ndarray
    pull: np.ndarray
    radius: np.ndarray
    height: np.ndarray
    gain: np.ndarray
    grip: np.ndarray
    speed: np.ndarray

    def act(self, obs: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Actions `[B, 4]` for observations `[B, 39]`, with noise `[B, 4]`."""
        hand, handle = obs[:, :3], obs[:, 4:7]
        aside = hand[:, :2] - (handle[:, :2] - [0.05, 0.0])
        far = np.linalg.norm(aside, axis=1) > self.radius
        high = np.abs(hand[:, 2] - handle[:, 2]) > self.height
        low = np.where(high[:, None], self.beside, self.pull)
        place = handle + np.where(far[:, None], self.above, low)
        push = np.clip(self.gain[:, None] * (place - hand), -1.0, 1.0)
        action = np.c_[push * self.speed[:, None], self.grip]
        return np.clip(action + noise, -1.0, 1.0).astype(np.float32)


def draw_policies(number: int, seed: int) -> Policies:
    """The expert's constants, perturbed; a third keep the gripper open."""
    rng = np.random.default_rng(seed)
    return Policies(
        above=np.array([0.01, 0.02, 0.2]) + rng.normal(0, 0.015, (number, 3)),
        beside=np.array([0.01, 0.02, 0.0]) + rng.normal(0, 0.0075, (number, 3)),
        pull=np.array([-0.05, 0.0, 0.0]) + rng.normal(0, 0.015, (number, 3)),
        radius=0.12 * np.exp(rng.normal(0, 0.125, number)),
        height=0.04 * np.exp(rng.normal(0, 0.2, number)),
        gain=25 * np.exp(rng.normal(0, 0.25, number)),
        grip=np.where(rng.random(number) < 1 / 3, -1.0, 1.0),
        speed=rng.uniform(0.4, 1.0, number),
    )


def cases(name: str) -> tuple[Policies, np.ndarray, list[int]]:
    """Policies, noise `[T, B, 4]` and seeds of a set."""
    chosen = SETS[name]
    drawn = draw_policies(chosen.policies, chosen.policy_seed)
    twice = np.repeat(np.arange(chosen.policies), 2)
    noise = [
        np.random.default_rng([9, seed]).normal(0, NOISE, (STEPS, 4))
        for seed in chosen.seeds
    ]
    policies = Policies(*(values[twice] for values in drawn))
    return policies, np.stack(noise, 1), list(chosen.seeds)


def play_metaworld(prepare: Callable[[Any, int], None] = lambda env, i: None) -> Play:
    """Plays one episode after the other; `prepare` may alter each start."""

    def play(
        policies: Policies, noise: np.ndarray, seeds: list[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        from structjax.original.door_open import OriginalDoorOpen

        env = OriginalDoorOpen()
        info: dict[str, list] = {DISTANCE: [], SUCCESS: []}
        for i, seed in enumerate(seeds):
            obs = env.reset(seed)
            prepare(env, i)
            one = Policies(*(values[i : i + 1] for values in policies))
            steps = []
            for t in range(STEPS):
                step = env.step(one.act(obs[None], noise[t, i : i + 1])[0])
                obs = step.obs
                steps.append(step.info)
            for name, episodes in info.items():
                episodes.append([values[name] for values in steps])
        return np.array(info[DISTANCE]).T, np.array(info[SUCCESS]).T

    return play


def nudge(env: Any, index: int) -> None:
    """Moves the arm's joints by 1e-6 rad."""
    moved = np.random.default_rng([3, index]).normal(0, 1e-6, 7)
    env.simulator.data.qpos[:7] += moved


def play_metaworld_any(
    policies: Policies, noise: np.ndarray, seeds: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Meta-World on whichever MuJoCo is installed, its weld written for it."""
    from metaworld.sawyer_xyz_env import SawyerMocapBase

    from structjax.original import door_open

    def write_weld(self: Any) -> None:
        self.model.eq_data[0, :11] = [0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 5]

    SawyerMocapBase.reset_mocap_welds = write_weld
    door_open.PINNED.clear()
    return play_metaworld()(policies, noise, seeds)


def play_c(variant: Callable[[Any], Any] = lambda mjcf: mjcf.DoorModel()) -> Play:
    """Our MJCF in C MuJoCo; `variant` takes the module and gives the model."""

    def play(
        policies: Policies, noise: np.ndarray, seeds: list[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        from structjax.tasks.door_open import mjcf
        from structjax.tasks.door_open.configurations import door_positions
        from structjax.tasks.door_open.simulated import SimulatedDoors

        world = SimulatedDoors(door_positions(seeds), variant(mjcf))
        obs = world.observations()
        distance, success = [], []
        for t in range(STEPS):
            obs, _, info = world.step(policies.act(obs, noise[t]))
            distance.append(info[DISTANCE])
            success.append(info[SUCCESS])
        return np.array(distance), np.array(success)

    return play


def play_jax(backend: str) -> Play:
    """A backend of the task in JAX."""

    def play(
        policies: Policies, noise: np.ndarray, seeds: list[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        import jax

        from structjax.compilation import enable_compile_cache
        from structjax.tasks.registry import make_task

        enable_compile_cache()
        task = make_task("door_open", backend=backend)
        params, starts = task.initial(seeds)
        obs, state = jax.vmap(task.reset, (0, None))(starts, params)
        step = jax.jit(jax.vmap(task.step, (None, 0, 0, None)))
        distance, success = [], []
        for t in range(STEPS):
            actions = policies.act(np.asarray(obs), noise[t])
            obs, state, _, _, _, info = step(jax.random.key(0), state, actions, params)
            distance.append(np.asarray(info[DISTANCE]))
            success.append(np.asarray(info[SUCCESS]))
        return np.array(distance), np.array(success)

    return play


BACKENDS: dict[str, Play] = {
    "metaworld": play_metaworld(),
    "metaworld-nudged": play_metaworld(nudge),
    "metaworld-any-mujoco": play_metaworld_any,
    "c": play_c(),
    "c-jointed": play_c(lambda mjcf: mjcf.JOINTED),
    "c-five-substeps": play_c(lambda mjcf: mjcf.DoorModel(substeps=5)),
    "c-no-base": play_c(lambda mjcf: mjcf.DoorModel(gripper_base=False)),
    "c-no-tilt": play_c(lambda mjcf: mjcf.DoorModel(arm="slides")),
    "mjx": play_jax("mjx"),
    "analytic": play_jax("analytic"),
}


def write(backend: str, name: str, path: Path) -> None:
    """Plays a set and writes its rows."""
    from importlib import metadata

    policies, noise, seeds = cases(name)
    distance, success = BACKENDS[backend](policies, noise, seeds)
    solved = success > 0.5
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path,
        backend=f"{backend}, MuJoCo {metadata.version('mujoco')}",
        set=name,
        seeds=seeds,
        policy=np.repeat(np.arange(len(seeds) // 2), 2),
        success_ever=solved.any(0),
        success_final=solved[-1],
        first_success=np.where(solved.any(0), solved.argmax(0), STEPS),
        min_distance=distance.min(0).astype(np.float32),
        final_distance=distance[-1].astype(np.float32),
        **policies._asdict(),
    )


def compare(reference: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict:
    """The figures of one backend against Meta-World's rows."""
    from scipy.stats import spearmanr

    if not np.array_equal(reference["seeds"], other["seeds"]):
        raise SystemExit("the rows are of different sets")
    least, found = reference["min_distance"], other["min_distance"]
    paired = [values.reshape(-1, 2).mean(1) for values in (least, found)]
    same = reference["success_ever"] == other["success_ever"]
    held = reference["success_final"] == other["success_final"]
    ended, found_end = reference["final_distance"], other["final_distance"]
    late = np.abs(reference["first_success"] - other["first_success"])
    return {
        "backend": str(other["backend"]),
        "n": len(same),
        "success": other["success_ever"].mean(),
        "agreement": same.mean(),
        "d_min_m": float(np.abs(least - found).mean()),
        "d_first_steps": late.mean(),
        "rank_case": spearmanr(least, found)[0],
        "rank_policy": spearmanr(*paired)[0],
        "success_final": other["success_final"].mean(),
        "agreement_final": held.mean(),
        "d_final_m": float(np.abs(ended - found_end).mean()),
        "rank_final": spearmanr(ended, found_end)[0],
    }


def main() -> None:
    """`play` or `compare`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tasks = parser.add_subparsers(dest="job", required=True)
    playing = tasks.add_parser("play")
    playing.add_argument("backend", choices=BACKENDS)
    playing.add_argument("set", choices=SETS)
    playing.add_argument("rows", type=Path)
    comparing = tasks.add_parser("compare")
    comparing.add_argument("rows", type=Path, nargs="+")
    options = parser.parse_args()
    if options.job == "play":
        write(options.backend, options.set, options.rows)
        return
    loaded = [dict(np.load(path)) for path in options.rows]
    rows = [compare(loaded[0], each) for each in loaded]
    print("| " + " | ".join(rows[0]) + " |\n" + "|---" * len(rows[0]) + "|")
    for row in rows:
        shown = [f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()]
        print("| " + " | ".join(shown) + " |")


if __name__ == "__main__":
    main()
