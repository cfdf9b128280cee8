"""The recipes, and options that are refused."""

from dataclasses import asdict, replace

import pytest
from rl.probes import Straight
from toy import toy_task

from structjax.errors import StructjaxError
from structjax.rl.config import PRESETS, RLConfig, scalars
from structjax.rl.gradient import PolicyGradient


def test_the_paper_preset_is_the_paper_to_the_letter():
    """Every field, so that a new one cannot slip into the recipe unseen."""
    assert asdict(PRESETS["paper"]) == {
        # Product of the ratios over a window of 150 valid steps, not normalised.
        "ratio": "window_product",
        "window": 150,
        "window_ends": "full",
        # Reward-to-go, standardised per time step across the episodes still valid.
        "advantage": "group_time",
        "grouping": "survivors",
        "advantage_floor": 0.0,
        "gamma": 0.98,
        # 20 episodes of one initial state an update, 3 epochs over all of them.
        "groups": 1,
        "episodes": 20,
        "epochs": 3,
        "minibatches": 1,
        # Clip 0.2 on both sides, one-sided; Adam at 0.007.
        "clip_low": 0.2,
        "clip_high": 0.2,
        "dual_clip": 0.0,
        "learning_rate": 0.007,
        "learning_rate_schedule": "constant",
        # Entropy 0.01 (1 - k / K).
        "entropy": 0.01,
        "entropy_schedule": "linear",
        # None of these is named.
        "max_grad_norm": 0.0,
        "kl_stop": 0.0,
        "std_floor": 0.0,
        # No critic: without effect.
        "gae_lambda": 0.95,
        "value_coefficient": 0.5,
        "reward_scale": 1.0,
    }
    assert PRESETS["paper"].resets_per_update == 20  # 400 resets: 20 updates


def test_scalars_are_the_configuration_s():
    numbers = scalars(PRESETS["gspo"])
    assert float(numbers.clip_low) == pytest.approx(3e-4)  # GSPO's, left and right
    assert float(numbers.clip_high) == pytest.approx(4e-4)
    for name, value in numbers._asdict().items():
        assert float(value) == pytest.approx(getattr(PRESETS["gspo"], name))
        assert str(value.dtype) == "float32"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"ratio": "product"}, "ratio"),
        ({"advantage": None}, "advantage"),
        ({"window": 0}, "window"),
        ({"window": 2.5}, "window"),
        ({"epochs": 0}, "epochs"),
        ({"groups": -1}, "groups"),
        ({"gamma": 1.5}, "gamma"),
        ({"gamma": float("nan")}, "gamma"),
        ({"clip_low": 1.1}, "clip_low"),
        ({"clip_high": -0.1}, "clip_high"),
        ({"learning_rate": float("inf")}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"dual_clip": 0.5}, "dual_clip"),
        ({"episodes": 1}, "episodes"),
        ({"minibatches": 3}, "minibatches"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(options, named):
    with pytest.raises(StructjaxError, match=named) as error:
        RLConfig(**options)
    assert error.value.hint


def test_a_critic_needs_no_second_episode():
    assert RLConfig(advantage="gae", episodes=1).resets_per_update == 4


def test_windows_that_never_end_are_refused():
    policy = Straight()
    PolicyGradient(policy, toy_task(), replace(PRESETS["paper"], window=5), 20)
    with pytest.raises(StructjaxError, match="150 steps never end within the 5"):
        PolicyGradient(policy, toy_task(), PRESETS["paper"], 20)
    cut = replace(PRESETS["paper"], window_ends="truncated")
    PolicyGradient(policy, toy_task(), cut, 20)
