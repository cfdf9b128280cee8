"""Which weights and latents of two programs are the same, whatever they are called."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Latent,
    Number,
    Previous,
    Slice,
    Structure,
    Variable,
    Weight,
    children,
    with_leaves,
)

Name = Weight | Variable
Pairs = dict[Name, Name]
"""Old -> new."""

MAX_INLINED = 200
"""Temporaries of more operators and operands stay names of their own."""


def inlined(structure: Structure) -> Structure:
    """The structure with its temporaries written out where they are used."""
    texts: dict[str, Expression] = {}
    sizes: dict[str, int] = {}
    latents = []
    for latent in structure.latents:
        expression = _replaced(latent.expression, texts)
        sizes[latent.name] = _size(latent.expression, sizes)
        if latent.logged or sizes[latent.name] > MAX_INLINED:
            latents.append(replace(latent, expression=expression))
            sizes[latent.name] = 1
        else:
            texts[latent.name] = expression
    heads = tuple(
        replace(head, arguments=tuple(_replaced(e, texts) for e in head.arguments))
        for head in structure.heads
    )
    coupling = tuple(_replaced(e, texts) for e in structure.coupling)
    return replace(structure, latents=tuple(latents), heads=heads, coupling=coupling)


def _size(expression: Expression, sizes: Mapping[str, int]) -> int:
    if isinstance(expression, Variable):
        return sizes[expression.name]
    return 1 + sum(_size(part, sizes) for part in children(expression))


def _replaced(expression: Expression, texts: Mapping[str, Expression]) -> Expression:
    return with_leaves(
        expression,
        lambda leaf: texts.get(leaf.name, leaf) if isinstance(leaf, Variable) else leaf,
    )


def rewritten(expression: Expression, pairs: Pairs) -> Expression:
    """An old expression in new names; what has no partner becomes a name of nothing."""

    def renamed(leaf: Expression) -> Expression:
        match leaf:
            case Weight(name):
                return pairs.get(leaf, Weight(f"?{name}"))
            case Variable(name):
                return pairs.get(leaf, Variable(f"?{name}"))
            case Previous(latent, initial):
                found = pairs.get(Variable(latent))
                return Previous(found.name if found else f"?{latent}", initial)
        return leaf

    return with_leaves(expression, renamed)


def match_programs(old: Structure, new: Structure) -> Pairs:
    """The weights and latents that correspond.

    First what has the same name and computes the same, or computes the same under a
    name that is new; then what has exchanged names; last what has the same name and
    computes something else.
    """
    matching = _Matching(old, new)
    matching.by_meaning(new_names_only=True)
    matching.by_meaning(new_names_only=False)
    matching.by_name()
    matching.by_meaning(new_names_only=True)  # what refers to those
    matching.by_heads()
    return matching.pairs


class _Matching:
    """Pairs found so far."""

    def __init__(self, old: Structure, new: Structure) -> None:
        self._old, self._new = old, new
        self._old_latents = {latent.name: latent for latent in old.latents}
        self._new_latents = {latent.name: latent for latent in new.latents}
        self._bounds_old = {p.name: (p.low, p.high) for p in old.parameters}
        self._bounds_new = {p.name: (p.low, p.high) for p in new.parameters}
        common = set(self._bounds_old) & set(self._bounds_new)
        self.pairs: Pairs = {Weight(name): Weight(name) for name in common}

    def by_meaning(self, *, new_names_only: bool) -> None:
        """Pairs latents that compute the same, in the order of definition."""
        for latent in self._old.latents:
            if Variable(latent.name) in self.pairs:
                continue
            for candidate in self._candidates(latent, new_names_only):
                trial = self._unified(latent, candidate)
                if trial is not None:
                    self.pairs = trial
                    break

    def _candidates(self, latent: Latent, new_names_only: bool) -> Iterator[Latent]:
        """New latents without a partner, the one of the same name first."""
        taken = set(self.pairs.values())
        same = self._new_latents.get(latent.name)
        if same is not None and Variable(same.name) not in taken:
            yield same
        if isinstance(latent.expression, Number) or not latent.logged:
            return  # a constant, or what may have any name, says nothing
        for candidate in self._new.latents:
            known = new_names_only and candidate.name in self._old_latents
            if not known and candidate.logged and Variable(candidate.name) not in taken:
                yield candidate

    def _unified(self, old: Latent, new: Latent) -> Pairs | None:
        """The pairs with these two and what they imply, if they compute the same."""
        trial: Pairs = {**self.pairs, Variable(old.name): Variable(new.name)}
        return trial if self._agree(old.expression, new.expression, trial) else None

    def by_name(self) -> None:
        """Pairs the remaining latents of equal names."""
        taken = set(self.pairs.values())
        for name in self._old_latents:
            key = Variable(name)
            if name in self._new_latents and key not in self.pairs and key not in taken:
                self.pairs[key] = key

    def by_heads(self) -> None:
        """Pairs weights that only the heads use."""
        heads = {head.action: head for head in self._new.heads}
        for head in self._old.heads:
            other = heads.get(head.action)
            for one, two in zip(
                head.arguments, other.arguments if other else (), strict=False
            ):
                trial = dict(self.pairs)
                if self._agree(one, two, trial):
                    self.pairs = trial

    def _agree(self, old: Expression, new: Expression, trial: Pairs) -> bool:
        """Whether two expressions are the same under the pairs; adds new pairs."""
        match old, new:
            case Weight(a), Weight(b):
                return self._same_name(Weight(a), Weight(b), trial)
            case Variable(a), Variable(b):
                return self._same_name(Variable(a), Variable(b), trial)
            case Previous(a, start), Previous(b, other):
                same = self._same_name(Variable(a), Variable(b), trial)
                return start == other and same
            case Call(a, some), Call(b, others) if a == b and len(some) == len(others):
                pairs = zip(some, others, strict=True)
                return all(self._agree(x, y, trial) for x, y in pairs)
            case Index(v, i), Index(w, j):
                return i == j and self._agree(v, w, trial)
            case Slice(v, start, stop), Slice(w, first, last):
                same = (start, stop) == (first, last)
                return same and self._agree(v, w, trial)
        return old == new

    def _same_name(self, old: Name, new: Name, trial: Pairs) -> bool:
        if old in trial:
            return trial[old] == new
        if new in trial.values():
            return False
        if old.name == new.name:
            return True  # paired by name later, if by nothing else
        if isinstance(old, Weight):
            if new.name in self._bounds_old or old.name in self._bounds_new:
                return False
            if self._bounds_old[old.name] != self._bounds_new[new.name]:
                return False
            trial[old] = new
            return True
        return False
