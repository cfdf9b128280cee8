"""What the trainer asks of an algorithm: three pure functions for one training seed."""

from typing import Any, Protocol

import jax


class Algorithm(Protocol):
    """A hashable object; the trainer vmaps its functions over training seeds.

    The metrics of an update always hold `resets`, `env_steps` and `gradient_steps`
    (int32, of this update) and `return`, the mean over its episodes.
    """

    @property
    def policy(self) -> Any:
        """The policy that is trained."""

    @property
    def resets_per_update(self) -> int:
        """Episodes that one update plays."""

    def init(self, key: jax.Array, variables: Any) -> Any:
        """The state that training begins with."""

    def update(
        self, state: Any, params: Any, bank: Any, scalars: Any
    ) -> tuple[Any, dict[str, jax.Array]]:
        """One update: (state, metrics).

        `params, bank = task.initial(training seeds)`: each update draws its own initial
        states from the bank.
        """

    def variables(self, state: Any) -> Any:
        """The policy's variables, as they would be deployed."""

    def looked(
        self, state: Any, variables: Any, deficit: jax.Array, scalars: Any
    ) -> Any:
        """The state after an appraisal.

        `deficit` is how far the selection return lies below the best so far, whose
        variables are given: an algorithm may go back to them.
        """
