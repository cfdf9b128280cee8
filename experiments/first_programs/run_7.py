lookahead_base = weight(6.0, low=3.0, high=12.0)  # look-ahead distance at rest, m
lookahead_time = weight(0.14, low=0.05, high=0.3)  # extra look-ahead per speed, s
inside_gain = weight(50.0, low=0.0, high=120.0)  # shift to the inside per curvature of the bend at the target, m^2
outside_gain = weight(20.0, low=0.0, high=80.0)  # shift to the outside per curvature of the bend further ahead, m^2
line_limit = weight(3.2, low=0.5, high=5.0)  # largest shift of the driving line from the centre line, m
wheelbase = weight(3.24, low=2.0, high=5.0)  # steering angle per path curvature, m
yaw_damping = weight(0.02, low=0.0, high=0.08)  # steering correction per error of the yaw rate, s
grip_accel_steer = weight(225.0, low=140.0, high=300.0)  # lateral acceleration beyond which steering more only slides, m/s^2
grip_accel_bend = weight(155.0, low=80.0, high=280.0)  # lateral acceleration planned for the bends of the road, m/s^2
grip_accel_path = weight(190.0, low=100.0, high=300.0)  # lateral acceleration allowed on the arc to the target, m/s^2
curvature_floor = weight(0.004, low=0.001, high=0.02)  # curvature that counts as straight, 1/m
brake_accel_plan = weight(115.0, low=50.0, high=200.0)  # deceleration planned before bends, m/s^2
brake_margin = weight(3.0, low=0.0, high=10.0)  # distance kept in reserve when braking, m
speed_cap = weight(95.0, low=60.0, high=100.0)  # top speed from which the visible road suffices to brake, m/s
edge_slowdown = weight(4.0, low=0.0, high=15.0)  # speed given up per metre beyond the safe lateral band, 1/s
edge_band = weight(5.0, low=2.0, high=7.0)  # half width of the safe lateral band, m
drive_rate = weight(9.0, low=3.0, high=25.0)  # wanted acceleration per missing speed, 1/s
brake_rate = weight(15.0, low=5.0, high=30.0)  # wanted deceleration per excess speed, 1/s
brake_deadband = weight(0.7, low=0.0, high=4.0)  # excess speed tolerated without braking, m/s
drive_grip = weight(350.0, low=200.0, high=420.0)  # total force of a rear tyre that driving may use up, N
brake_grip = weight(345.0, low=200.0, high=420.0)  # total force of a tyre that braking may use up, N
tyre_stiffness = weight(82.0, low=40.0, high=160.0)  # tyre force per slip speed, N s/m
brake_force_per_unit = weight(2200.0, low=1000.0, high=4500.0)  # braking force of a tyre per unit of brake, N
slip_allowed = weight(5.0, low=3.0, high=10.0)  # slip speed of a rear wheel before the gas is cut, m/s
slip_gain = weight(0.06, low=0.0, high=0.3)  # gas taken back per slip speed above that, s/m
grass_grip = weight(0.6, low=0.4, high=1.0)  # share of the grip left on grass

UNIT_LENGTH = 33.33
TILE_STEP = 3.5
CAR_MASS = 7.3
WHEEL_RADIUS = 0.54
WHEEL_POWER = 40000.0
OMEGA_OFFSET = 5.0
MIN_SPEED = 12.0
WHEEL_STOP = 0.4
MAX_CURVATURE = 0.12


def left_grip(total_force, lateral_force):
    remaining = square(total_force) - square(lateral_force)
    floor_force = 0.15 * total_force
    return sqrt(max(remaining, square(floor_force)))


def policy(obs):
    # motion of the car in SI units
    speed = 100.0 * obs.speed  # m/s
    yaw_rate = 10.0 * obs.yaw_rate  # rad/s, positive left
    lateral_error = UNIT_LENGTH * obs.tiles.x[0]  # m, positive: the car is left of the centre line
    nearest_ahead = UNIT_LENGTH * obs.tiles.y[0]  # m
    grip_share = where(abs(lateral_error) > 6.67, grass_grip, 1.0)  # grip on road or grass

    # tile at the look-ahead distance, by linear interpolation
    lookahead = lookahead_base + lookahead_time * speed  # m
    tile_number = stack(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0)
    target_number = clip((lookahead - nearest_ahead) / TILE_STEP, 1.0, 10.5)
    target_share = relu(1.0 - abs(tile_number - target_number))
    centre_x = UNIT_LENGTH * sum(target_share * obs.tiles.x)  # m to the right
    centre_y = UNIT_LENGTH * sum(target_share * obs.tiles.y)  # m ahead
    target_heading = pi * sum(target_share * obs.tiles.heading)  # rad, positive left

    # driving line: outside before a bend, inside in it (positive: left)
    near_bend = wrap_angle(pi * (obs.tiles.heading[6] - obs.tiles.heading[1])) / (5.0 * TILE_STEP)  # 1/m
    far_bend = wrap_angle(pi * (obs.tiles.heading[11] - obs.tiles.heading[6])) / (5.0 * TILE_STEP)  # 1/m
    line_shift = clip(inside_gain * near_bend - outside_gain * far_bend, -line_limit, line_limit)  # m
    target_x = centre_x - line_shift * cos(target_heading)  # m to the right
    target_y = centre_y - line_shift * sin(target_heading)  # m ahead

    # arc through the target
    target_distance_sq = max(square(target_x) + square(target_y), 9.0)  # m^2
    arc_curvature = -2.0 * target_x / target_distance_sq  # 1/m, positive left
    wanted_curvature = where(target_y > 0.0, arc_curvature, -MAX_CURVATURE * sign(target_x))  # full lock when it lies behind
    grip_curvature = min(MAX_CURVATURE, grip_share * grip_accel_steer / max(square(speed), 100.0))  # 1/m
    path_curvature = clip(wanted_curvature, -grip_curvature, grip_curvature)  # 1/m

    # steering: kinematic angle and yaw damping
    yaw_error = path_curvature * speed - yaw_rate  # rad/s
    wheel_angle = wheelbase * path_curvature + yaw_damping * yaw_error  # rad, positive left
    steer_command = clip(-wheel_angle, -WHEEL_STOP, WHEEL_STOP)

    # speed allowed by every visible stretch of road
    stretch_turn = wrap_angle(pi * (obs.tiles.heading[4:12] - obs.tiles.heading[0:8]))  # rad over four tiles
    stretch_curvature = abs(stretch_turn) / (4.0 * TILE_STEP) + curvature_floor  # 1/m
    stretch_distance = relu(nearest_ahead + TILE_STEP * (tile_number[0:8] + 1.0) - brake_margin)  # m
    stretch_speed = sqrt(grip_accel_bend / stretch_curvature + 2.0 * brake_accel_plan * stretch_distance)  # m/s
    bend_speed = min(stretch_speed)  # m/s
    arc_speed = sqrt(grip_share * grip_accel_path / (abs(wanted_curvature) + curvature_floor))  # m/s
    edge_excess = relu(abs(lateral_error) - edge_band)  # m
    free_speed = min(bend_speed, arc_speed, speed_cap)  # m/s
    target_speed = max(free_speed - edge_slowdown * edge_excess, MIN_SPEED)  # m/s
    speed_missing = target_speed - speed  # m/s

    # grip left beside cornering
    lateral_force = CAR_MASS * speed * abs(yaw_rate) / 4.0  # N per tyre
    drive_force_limit = left_grip(grip_share * drive_grip, lateral_force)  # N per rear tyre
    brake_force_limit = left_grip(grip_share * brake_grip, lateral_force)  # N per tyre

    # gas: power that the wanted force needs at this wheel speed, cut on wheel spin
    drive_force = min(CAR_MASS * drive_rate * relu(speed_missing) / 2.0, drive_force_limit)  # N per rear tyre
    wanted_omega = (speed + drive_force / tyre_stiffness) / WHEEL_RADIUS  # rad/s
    gas_needed = drive_force * WHEEL_RADIUS * (wanted_omega + OMEGA_OFFSET) / WHEEL_POWER
    rear_slip = 108.0 * max(obs.wheel_speed[2], obs.wheel_speed[3]) - speed  # m/s
    spin_cut = slip_gain * relu(rear_slip - slip_allowed)
    gas_command = clip(gas_needed - spin_cut, 0.0, 1.0)

    # brake: slip that gives the wanted force, never locking
    speed_excess = relu(-speed_missing - brake_deadband)  # m/s
    brake_force = min(CAR_MASS * brake_rate * speed_excess / 4.0, brake_force_limit)  # N per tyre
    brake_command = clip(brake_force / brake_force_per_unit, 0.0, 0.5)

    return action(steer=normal(steer_command, std=0.04), gas=normal(gas_command, std=0.05), brake=normal(brake_command, std=0.02))
