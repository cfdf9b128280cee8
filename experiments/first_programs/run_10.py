# --- steering ---
lookahead_base = weight(0.16, sign="+", low=0.05, high=0.5)  # look-ahead distance at standstill, unit 33.33 m
lookahead_time = weight(0.78, sign="+", low=0.3, high=1.4)  # growth of the look-ahead distance with speed, 33.33 m per 100 m/s (0.26 s)
lookahead_spread = weight(0.16, sign="+", low=0.06, high=0.4)  # width of the group of tiles aimed at, unit 33.33 m
corridor_half = weight(0.12, sign="+", low=0.05, high=0.18)  # half width of the part of the road that the car's centre may use, unit 33.33 m
wheelbase = weight(0.097, sign="+", low=0.07, high=0.14)  # effective distance between the axles, unit 33.33 m
yaw_feedback = weight(0.15, sign="+", low=0.01, high=0.4)  # wheel angle against a yaw rate error, rad per 10 rad/s
steer_grip = weight(0.68, sign="+", low=0.45, high=0.85)  # largest lateral acceleration asked from the front wheels, unit 300 m/s2 (limit 0.73)
# --- speed profile ---
corner_grip = weight(0.45, sign="+", low=0.25, high=0.73)  # lateral acceleration planned for the bends ahead, unit 300 m/s2
arc_grip = weight(0.55, sign="+", low=0.3, high=0.75)  # lateral acceleration allowed on the arc driven now, unit 300 m/s2
line_extension = weight(0.32, sign="+", low=0.1, high=0.8)  # length that the driven line adds to a bend by cutting it, unit 33.33 m
turn_in_lead = weight(0.15, sign="+", low=0.02, high=0.4)  # distance before a bend at which its speed must be reached, unit 33.33 m
brake_decel = weight(0.333, sign="+", low=0.15, high=0.65)  # planned braking deceleration, unit 300 m/s2
top_speed = weight(0.88, sign="+", low=0.6, high=1.0)  # highest speed, given that only 38 m of road are visible, unit 100 m/s
grass_grip_loss = weight(0.4, sign="+", low=0.2, high=0.6)  # share of the grip that is lost with all wheels on grass, no unit
recovery_speed = weight(0.15, sign="+", low=0.08, high=0.35)  # speed while the car points across or against the road, unit 100 m/s
align_tolerance = weight(0.8, sign="+", low=0.5, high=1.3)  # heading error up to which no slowing is needed, rad
align_range = weight(0.8, sign="+", low=0.3, high=1.5)  # further heading error over which the speed falls to the recovery speed, rad
# --- brake ---
brake_gain = weight(12.0, sign="+", low=4.0, high=25.0)  # brake per speed excess, 1 per 100 m/s
brake_limit = weight(0.6, sign="+", low=0.2, high=0.8)  # largest brake command, below locking, no unit
lock_slip = weight(0.08, sign="+", low=0.05, high=0.15)  # wheel slip at which the brake is released fully, unit 100 m/s
lock_range = weight(0.04, sign="+", low=0.015, high=0.08)  # slip range over which the brake is released, unit 100 m/s
# --- gas ---
gas_gain = weight(30.0, sign="+", low=8.0, high=80.0)  # share of the usable gas per missing speed, 1 per 100 m/s
drive_gain = weight(1.25, sign="+", low=0.7, high=1.7)  # gas that the rear tyres carry per speed (constant power), 1 per 100 m/s
crawl_speed = weight(0.04, sign="+", low=0.015, high=0.1)  # speed offset of the power law at rest, unit 100 m/s
power_grip = weight(0.7, sign="+", low=0.45, high=0.85)  # lateral acceleration at which no grip is left for the engine, unit 300 m/s2
spin_slip = weight(0.08, sign="+", low=0.05, high=0.15)  # rear wheel slip at which the gas is closed fully, unit 100 m/s
spin_range = weight(0.035, sign="+", low=0.015, high=0.08)  # slip range over which the gas is closed, unit 100 m/s

TILE_GAP = 0.105
ROAD_HALF = 0.2
HALF_TRACK = 0.033
CLOSEST = 0.14
WHEEL_STOP = 0.4
RIM = 1.08


def arc_curvature(point_right, point_ahead):
    # curvature (to the right, per 33.33 m) of the arc that starts along the car and passes the point;
    # points behind the car ask for the tightest turn towards their side
    distance = sqrt(square(point_right) + square(point_ahead))
    bearing = clip(atan2(point_right, point_ahead), -pi / 2, pi / 2)
    return 2 * sin(bearing) / max(distance, CLOSEST)


def turn_angle(heading_end, heading_start):
    # size of the turn between two tiles, rad
    return abs(wrap_angle(pi * (heading_end - heading_start)))


def bend_speed_sq(angle, length, distance, grip):
    # speed squared allowed now: bend speed on the lengthened line plus what braking removes before it
    return grip * (length + line_extension) / max(angle, 0.05) + 2 * brake_decel * relu(distance - turn_in_lead)


def policy(obs):
    # --- where the car is on the road ---
    heading_0 = pi * obs.tiles.heading[0]  # road direction at the nearest tile, rad, positive left
    centre_right = obs.tiles.x[0] * cos(heading_0) + obs.tiles.y[0] * sin(heading_0)  # centre line lies this far to the right, across the road
    nearest_ahead = obs.tiles.y[0] * cos(heading_0) - obs.tiles.x[0] * sin(heading_0)  # nearest tile lies this far ahead, along the road
    tile_number = stack(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
    road_distance = TILE_GAP * tile_number + nearest_ahead  # distance to each tile along the road
    heading_error = abs(pi * obs.tiles.heading[1])  # angle between the car and the road, rad
    grass_share = clip((abs(centre_right) - ROAD_HALF + HALF_TRACK) / (2 * HALF_TRACK), 0, 1)  # share of the wheels on grass
    surface_grip = 1 - grass_grip_loss * grass_share  # grip relative to the road

    # --- arc to drive: aim far ahead, but stay in the corridor ---
    lookahead = lookahead_base + lookahead_time * obs.speed  # distance aimed at
    aim_weight = exp(-square((road_distance[2:12] - lookahead) / lookahead_spread)) + 0.000001  # importance of each tile for the aim
    ahead_right = obs.tiles.x[2:12]
    ahead_forward = obs.tiles.y[2:12]
    ahead_heading = pi * obs.tiles.heading[2:12]
    across_right = corridor_half * cos(ahead_heading)  # from the centre line to the right corridor limit, car's right
    across_forward = corridor_half * sin(ahead_heading)  # the same, car's forward direction
    centre_arc = arc_curvature(ahead_right, ahead_forward)  # arcs to the centre of tiles 2 to 11
    leftmost_arc = arc_curvature(ahead_right - across_right, ahead_forward - across_forward)  # arcs to their left corridor limit
    rightmost_arc = arc_curvature(ahead_right + across_right, ahead_forward + across_forward)  # arcs to their right corridor limit
    aim_arc = weighted_mean(centre_arc, aim_weight)  # smooth arc to the look-ahead point, positive right
    arc_within_7 = clip(aim_arc, leftmost_arc[5], rightmost_arc[5])  # kept inside the corridor at tile 7
    arc_within_6 = clip(arc_within_7, leftmost_arc[4], rightmost_arc[4])  # then tile 6
    arc_within_5 = clip(arc_within_6, leftmost_arc[3], rightmost_arc[3])  # then tile 5
    arc_within_4 = clip(arc_within_5, leftmost_arc[2], rightmost_arc[2])  # then tile 4
    wanted_arc = clip(arc_within_4, leftmost_arc[1], rightmost_arc[1])  # nearest limit (tile 3) has the last word
    arc_limit = steer_grip * surface_grip / max(square(obs.speed), 0.03)  # tightest arc that the tyres hold at this speed
    driven_arc = clip(wanted_arc, -arc_limit, arc_limit)  # curvature asked from the car, positive right

    # --- steering: kinematic wheel angle plus yaw rate feedback (counter-steers a slide) ---
    kinematic_angle = atan2(wheelbase * driven_arc, 1)  # wheel angle for the arc, rad to the right
    wanted_yaw_rate = 0.3 * driven_arc * obs.speed  # yaw rate of the arc, 10 rad/s, positive right
    yaw_rate_error = wanted_yaw_rate + obs.yaw_rate  # missing rotation to the right
    steer_command = clip(kinematic_angle + yaw_feedback * yaw_rate_error, -WHEEL_STOP, WHEEL_STOP)

    # --- allowed speed ---
    bend_grip = corner_grip * surface_grip
    turn_3 = turn_angle(obs.tiles.heading[3:12], obs.tiles.heading[0:9])  # turn over 3 tiles, short bends
    turn_6 = turn_angle(obs.tiles.heading[6:12], obs.tiles.heading[0:6])  # turn over 6 tiles, long bends
    turn_9 = turn_angle(obs.tiles.heading[9:12], obs.tiles.heading[0:3])  # turn over 9 tiles, hairpins
    short_bend_sq = min(bend_speed_sq(turn_3, 3 * TILE_GAP, road_distance[0:9], bend_grip))  # speed squared for short bends
    long_bend_sq = min(bend_speed_sq(turn_6, 6 * TILE_GAP, road_distance[0:6], bend_grip))  # speed squared for long bends
    hairpin_sq = min(bend_speed_sq(turn_9, 9 * TILE_GAP, road_distance[0:3], bend_grip))  # speed squared for hairpins
    arc_sq = arc_grip * surface_grip / max(abs(wanted_arc), 0.05)  # speed squared for the arc wanted now
    grip_speed = sqrt(min(short_bend_sq, long_bend_sq, hairpin_sq, arc_sq))  # speed that the tyres allow
    alignment = clip((align_tolerance + align_range - heading_error) / align_range, 0, 1)  # 1 along the road, 0 across or against it
    align_speed = recovery_speed + (top_speed - recovery_speed) * alignment  # speed that the heading error allows
    target_speed = max(min(grip_speed, align_speed, top_speed), 0.1)
    speed_missing = target_speed - obs.speed  # positive: too slow

    # --- brake: proportional, released when the wheels start to lock ---
    brake_slip = obs.speed - RIM * mean(obs.wheel_speed)  # wheels turn this much too slowly
    anti_lock = clip((lock_slip - brake_slip) / lock_range, 0, 1)
    brake_command = clip(brake_gain * (-speed_missing - 0.005), 0, brake_limit) * anti_lock

    # --- gas: constant power law below the grip of the rear tyres, shared with cornering ---
    lateral_use = 3.333 * obs.speed * abs(obs.yaw_rate) / (power_grip * surface_grip)  # share of the grip used by cornering
    drive_share = relu(1 - square(lateral_use))  # share left for the engine
    rear_slip = RIM * mean(obs.wheel_speed[2:4]) - obs.speed  # rear wheels turn this much too fast
    traction = clip((spin_slip - rear_slip) / spin_range, 0, 1)
    usable_gas = drive_gain * surface_grip * (obs.speed + crawl_speed) * drive_share * traction  # gas that the rear tyres can carry
    gas_command = clip(usable_gas * clip(gas_gain * speed_missing, 0, 1), 0, 1)

    return action(steer=normal(steer_command, std=0.03), gas=normal(gas_command, std=0.05), brake=normal(brake_command, std=0.02))
