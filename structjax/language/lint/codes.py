"""What a lint can find in an accepted program, beside the parser's own warnings."""

#: Every code, with its meaning. The last ones need a demonstration.
LINT_CODES = {
    "NO_GRADIENT": "a weight that no gradient can reach",
    "FLAT_FAR": "a latent that is constant beyond a distance, without gradient there",
    "ZERO_DIVISOR": "a division by what can be 0",
    "UNREACHABLE_BRANCH": "a condition that the schema's ranges decide",
    "UNREACHABLE_ACTION": "a part of an action's range that its mean cannot reach",
    "ONE_SIDED_NOISE": "a normal action that rests at 0, the edge of its range",
    "UNLIKE_UNITS": "values of unlike units added, subtracted or compared",
    "ANGLE_UNIT": "an angle that is not in rad where rad is needed",
    "PARITY": "a term that breaks the left-right symmetry of its action",
    "DUPLICATE": "an expression that is written several times",
    "MAGIC_NUMBER": "an unnamed number in the policy",
    "ZERO_GRADIENT": "a weight without any effect along the demonstration",
    "SATURATED": "a clip that stays at its bounds along the demonstration",
    "HEAD_OUTSIDE": "a mean outside its action's range along the demonstration",
    "COPYCAT": "an observation that repeats the previous action, and is used",
}
