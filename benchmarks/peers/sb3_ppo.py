"""stable-baselines3's PPO, in a process of its own (torch, one thread).

The process reads one JSON request a line and answers with one. Not like for like:
Gymnasium's NumPy environment in a `DummyVecEnv`, actor and critic 2x64 tanh by default;
seeds run one after the other.
"""

import json
import subprocess
import sys
import time
from dataclasses import asdict
from typing import Any

PENDULUM_START = ("theta", "theta_dot")


def prepare(job: Any) -> Any:
    """SB3's PPO on the job, in a worker that stays until this process ends."""
    import numpy as np

    from peers import settings
    from peers.arm import Arm, Timed
    from peers.gymnax_env import HORIZONS

    chosen = settings.ppo(job.column, job.environment)
    steps = chosen.updates(job.steps) * chosen.batch
    worker = _Worker(job.sb3_python or sys.executable)
    request = {
        "environment": job.environment,
        "steps": steps,
        "ppo": asdict(chosen),
        "sde": job.column == "tuned" and job.environment == "Pendulum-v1",
        "starts": _starts(job.environment),
        "horizon": HORIZONS[job.environment],
    }
    worker.ask({"hello": True})

    def run(number: int) -> Timed:
        seeds = [seed + 1000 * number for seed in range(job.seeds)]
        answers = [worker.ask({**request, "seed": seed}) for seed in seeds]
        return Timed(
            [answer["returns"] for answer in answers],
            sum(answer["wall_s"] for answer in answers),
            sum(answer["cpu_s"] for answer in answers),
        )

    return Arm(
        run=run,
        returns=np.asarray,
        env_steps=steps * job.seeds,
        gradient_steps=chosen.gradient_steps(job.steps),
    )


def _starts(name: str) -> list[list[float]]:
    """The judge's start states as Gymnasium's environment holds them."""
    import numpy as np

    from peers.gymnax_env import starts

    obs, state = starts(name)
    if name == "Pendulum-v1":
        state = [getattr(state, field) for field in PENDULUM_START]
        return np.stack([np.asarray(part) for part in state], axis=1).tolist()
    return np.asarray(obs).tolist()


class _Worker:
    """The process with SB3."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and waits for its answer."""
        from peers.arm import Unavailable

        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "its process ended"}
        if "error" in answer:
            raise Unavailable(f"sb3: {answer['error']}")
        return answer


def _learn(request: dict[str, Any]) -> dict[str, Any]:
    """Trains once; seconds of `learn` alone, returns from the judge's starts."""
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    chosen = request["ppo"]
    environments = make_vec_env(
        request["environment"],
        n_envs=chosen["environments"],
        seed=request["seed"],
    )
    sde = {"use_sde": True, "sde_sample_freq": 4} if request["sde"] else {}
    model = PPO(
        "MlpPolicy",
        environments,
        n_steps=chosen["rollout"],
        batch_size=chosen["environments"] * chosen["rollout"] // chosen["minibatches"],
        n_epochs=chosen["epochs"],
        learning_rate=chosen["learning_rate"],
        gamma=chosen["gamma"],
        gae_lambda=chosen["gae_lambda"],
        clip_range=chosen["clip"],
        ent_coef=chosen["entropy"],
        vf_coef=chosen["value"],
        max_grad_norm=chosen["max_grad_norm"],
        seed=request["seed"],
        device="cpu",
        **sde,
    )
    wall, cpu = time.perf_counter(), time.process_time()
    model.learn(request["steps"])
    seconds = {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
    }
    judge = gymnasium.make(request["environment"])
    returns = [_episode(model, judge, start, request) for start in request["starts"]]
    return {**seconds, "returns": returns}


def _episode(model: Any, judge: Any, start: list[float], request: Any) -> float:
    """The return of one episode from a given state, best action."""
    import numpy as np

    judge.reset(seed=0)
    judge.unwrapped.state = np.asarray(start, np.float64)
    pendulum = request["environment"] == "Pendulum-v1"
    obs = judge.unwrapped._get_obs() if pendulum else np.asarray(start, np.float32)
    total = 0.0
    for _ in range(request["horizon"]):
        action, _ = model.predict(obs, deterministic=True)
        obs, reward, terminated, truncated, _ = judge.step(action)
        total += float(reward)
        if terminated or truncated:
            break
    return total


def _serve() -> None:
    """Answers requests until the other side goes away."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "hello" in request:
                import stable_baselines3

                answer = {"version": stable_baselines3.__version__}
            else:
                answer = _learn(request)
        except Exception as error:  # whatever it is, the other side reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
