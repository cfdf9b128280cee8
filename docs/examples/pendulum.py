"""Pump energy until the pendulum can reach the top, then hold it there."""

GRAVITY = 15.0  # angular acceleration when horizontal

pump = weight(0.1, sign="+")  # torque per unit of missing energy
stiffness = weight(10.0, sign="+")  # torque per unit of sin_angle near the top
damping = weight(2.0, sign="+")  # torque per rad/s near the top
near_top = weight(0.8, low=0.0, high=1.0)  # cos_angle beyond which it is held


def policy(obs):
    energy = 0.5 * square(obs.angular_velocity) + GRAVITY * obs.cos_angle
    missing = GRAVITY - energy  # 0 when it just reaches the top
    swing = pump * missing * obs.angular_velocity
    hold = -(stiffness * obs.sin_angle + damping * obs.angular_velocity)
    torque = clip(hold if obs.cos_angle > near_top else swing, -2, 2)
    return action(torque=normal(torque, std=0.2))
