"""Push towards the side to which the pole falls; drift back to the middle."""

lean_gain = weight(5.0, sign="+")  # push per rad of lean
fall_gain = weight(1.0, sign="+")  # push per rad/s of falling
drift_gain = weight(0.5, sign="+")  # push per m/s of cart velocity
centre_gain = weight(0.3, sign="+")  # push per m from the middle
decision = weight(5.0, sign="+")  # how sharply the push becomes a choice


def policy(obs):
    falling = lean_gain * obs.angle + fall_gain * obs.angular_velocity
    # Leaning towards the middle needs a push outwards first: the same sign.
    drifting = drift_gain * obs.velocity + centre_gain * obs.position
    push = decision * (falling + drifting)  # positive: right
    return action(push=categorical(-push, push))
