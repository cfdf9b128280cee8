"""The part of an exported NumPy module that acts: modes, samples and `predict`."""

from collections.abc import Sequence

from structjax.language.structure import Head
from structjax.schema import Schema

CONTINUOUS = '''class Decision(NamedTuple):
    """The distribution of the actions in one step, and what led to it."""

    mean: np.ndarray
    std: np.ndarray
    latents: dict
    memory: dict
    coupling: np.ndarray = np.zeros(0)
'''

CATEGORICAL = '''class Decision(NamedTuple):
    """The distribution of the action in one step, and what led to it."""

    logits: np.ndarray
    latents: dict
    memory: dict
'''

PREDICT = '''class Policy:
    """The policy as Stable-Baselines3's loops take it."""

    def __init__(self, seed=None):
        self.rng = np.random.default_rng(seed)

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        """The action, in its range, and the memory for the next call.

        Args:
          observation: `[O]`, or a batch `[B, O]`.
          state: what the last call returned; None at the start of an episode.
          episode_start: flags `[B]` of the episodes that begin here.
          deterministic: without noise, or drawn from the distribution.
        """
        observation = np.asarray(observation)
        batch = np.atleast_2d(observation)
        starts = np.zeros(len(batch), bool)
        if episode_start is not None:
            starts = np.broadcast_to(np.asarray(episode_start, bool), starts.shape)
        memories = None if state is None else np.atleast_2d(state)
        actions, kept = [], []
        for i, obs in enumerate(batch):
            memory = None
            if memories is not None and not starts[i]:
                memory = dict(zip(INITIAL_MEMORY, memories[i]))
            decision = act(obs, memory)
            drawn = mode(decision) if deterministic else sample(decision, self.rng)
            actions.append(drawn)
            kept.append(list(decision.memory.values()))
        single = observation.ndim == 1
        action, memory = (np.array(x[0] if single else x) for x in (actions, kept))
        return action, memory if INITIAL_MEMORY else None
'''

_CHOICE = '''def mode(decision):
    """The likeliest choice; the first of equal ones."""
    return np.argmax(decision.logits)


def sample(decision, rng):
    """A choice drawn from the distribution."""
    return np.argmax(decision.logits + rng.gumbel(size=len(CHOICES)))
'''

#: Family -> the action without noise, and a drawn one.
_MODES = {"tanh_normal": "squash({m}, {r})", "beta": "beta_mode({m}, {s}, {r})"}
_DRAWS = {
    family: f"sample_{family}({{m}}, {{s}}, {{r}}, rng)"
    for family in ("truncated_normal", "tanh_normal", "beta")
}


def acting(
    heads: Sequence[Head], schema: Schema, *, coupled: bool
) -> tuple[str, set[str]]:
    """The functions `mode` and `sample`, and which others they call."""
    if schema.discrete:
        return _CHOICE, set()
    families = [head.family for head in heads]
    modes = [_filled(_MODES.get(f, "{m}"), i) for i, f in enumerate(families)]
    normal = "{m} + {s} * noise[{i}]" if coupled else "rng.normal({m}, {s})"
    draws = [_filled(_DRAWS.get(f, normal), i) for i, f in enumerate(families)]
    lines = [
        "def mode(decision):",
        '    """The actions without noise, in their ranges."""',
        "    mean, std = decision.mean, decision.std",
        *_clipped(modes),
        "",
        "",
        "def sample(decision, rng):",
        '    """Actions drawn from the distribution, clipped to their ranges."""',
        "    mean, std = decision.mean, decision.std",
        *(["    noise = coupled_noise(decision.coupling, rng)"] if coupled else []),
        *_clipped(draws),
    ]
    called = {text.partition("(")[0] for text in modes + draws}
    return "\n".join(lines), called | ({"coupled_noise"} if coupled else set())


def _filled(template: str, i: int) -> str:
    place = {"m": f"mean[{i}]", "s": f"std[{i}]", "r": f"LOW[{i}], HIGH[{i}]", "i": i}
    return template.format(**place)


def _clipped(actions: Sequence[str]) -> list[str]:
    return [
        "    action = [",
        *(f"        {action}," for action in actions),
        "    ]",
        "    return np.clip(action, LOW, HIGH).astype(np.float32)",
    ]
