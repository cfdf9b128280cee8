METRE = 33.33            # metres per unit of obs.tiles
TILE = 3.5               # distance between road tiles, m
WHEELBASE = 3.24         # m
TYRE_LIMIT = 400.0       # largest force of one tyre on the road, N
TYRE_SLIP_GAIN = 82.0    # tyre force per slip speed, N per m/s
CAR_MASS = 7.3           # kg
ENGINE_POWER = 40000.0   # W per rear wheel
ENGINE_SPEED_OFFSET = 2.7  # rim speed added to the engine law, m/s

preview_base = weight(2.5, sign="+", low=0.5, high=6.0)  # preview at standstill, tiles
preview_per_speed = weight(4.0, sign="+", low=0.5, high=8.0)  # growth of the preview, tiles per 100 m/s
smoothing_width = weight(4.0, sign="+", low=1.0, high=8.0)  # width of the road average that cuts the bends, tiles
inside_limit = weight(3.3, sign="+", low=0.5, high=5.5)  # largest cut to the inside of the centre line, m
steer_gain = weight(1.0, sign="+", low=0.6, high=1.6)  # wheel angle relative to the kinematic angle, 1
yaw_gain = weight(0.015, sign="+", low=0.0, high=0.05)  # wheel angle per missing yaw rate, rad per rad/s
steer_accel_limit = weight(260.0, sign="+", low=150.0, high=400.0)  # lateral acceleration that steering may ask for, m/s2
bend_accel = weight(175.0, sign="+", low=80.0, high=300.0)  # lateral acceleration for bends averaged over 8 tiles, m/s2
kink_accel = weight(250.0, sign="+", low=100.0, high=450.0)  # lateral acceleration for bends averaged over 5 tiles, m/s2
pursuit_accel = weight(190.0, sign="+", low=100.0, high=300.0)  # lateral acceleration for the arc being driven, m/s2
planned_decel = weight(110.0, sign="+", low=30.0, high=200.0)  # deceleration assumed ahead of a bend, m/s2
top_speed = weight(95.0, sign="+", low=60.0, high=110.0)  # highest speed wanted, m/s
turn_round_speed = weight(15.0, sign="+", low=5.0, high=30.0)  # speed while the road is far to the side or behind, m/s
turn_round_angle = weight(1.1, sign="+", low=0.8, high=1.6)  # bearing of the target that counts as far to the side, rad
throttle_gain = weight(0.3, sign="+", low=0.05, high=1.0)  # share of the drive force per missing speed, 1 per m/s
brake_gain = weight(15.0, sign="+", low=3.0, high=40.0)  # deceleration per excess speed, 1/s
drive_grip_share = weight(0.85, sign="+", low=0.4, high=1.0)  # part of the tyre limit used when driving, 1
brake_grip_share = weight(0.85, sign="+", low=0.4, high=1.0)  # part of the tyre limit used when braking, 1
wheel_inertia_factor = weight(1.6, sign="+", low=1.0, high=2.5)  # engine force per tyre force, as the wheels must be spun up too, 1
brake_per_decel = weight(0.0033, sign="+", low=0.001, high=0.006)  # brake action per deceleration, 1 per m/s2
least_drive_force = weight(50.0, sign="+", low=10.0, high=150.0)  # drive force left when cornering takes all grip, N
least_decel = weight(60.0, sign="+", low=10.0, high=150.0)  # deceleration left when cornering takes all grip, m/s2
traction_cut = weight(0.5, sign="+", low=0.1, high=2.0)  # gas taken away per excess wheel slip, 1 per m/s
antilock_cut = weight(0.3, sign="+", low=0.05, high=2.0)  # brake taken away per excess wheel slip, 1 per m/s
grass_grip = weight(0.6, sign="+", low=0.4, high=0.9)  # grip on grass relative to the road, 1


def bend_speed(curvature, accel, distance, decel):
    # speed allowed now so that the bend at that distance can be taken
    bend_speed_squared = accel / (abs(curvature) + 0.0005)
    return sqrt(bend_speed_squared + 2.0 * decel * distance)


def policy(obs):
    # --- state of the car in SI units ---
    speed = 100.0 * obs.speed  # m/s
    yaw_right = -10.0 * obs.yaw_rate  # turning rate, positive to the right, rad/s
    rear_rim_speed = 54.0 * (obs.wheel_speed[2] + obs.wheel_speed[3])  # mean of the rear rims, m/s
    mean_rim_speed = 108.0 * mean(obs.wheel_speed)  # mean of all rims, m/s

    # --- grip of the ground below ---
    near_heading = pi * obs.tiles.heading[0]  # road direction here, rad to the left
    road_centre_right = obs.tiles.x[0] * cos(near_heading) + obs.tiles.y[0] * sin(near_heading)  # centre line to the right of the car, 33.33 m
    grip = where(abs(road_centre_right) > 0.19, grass_grip, 1.0)  # grip relative to the road

    # --- target point: a smoothed road ahead, kept near the centre line ---
    tile_index = stack(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0)
    preview = preview_base + preview_per_speed * obs.speed  # tiles
    smooth_share = exp(-square((tile_index - preview) / smoothing_width))  # weights of the wide road average
    centre_share = exp(-square((tile_index - preview) / 0.8))  # weights of the road at the preview itself
    smooth_x = METRE * weighted_mean(obs.tiles.x, smooth_share)  # m to the right
    smooth_y = METRE * weighted_mean(obs.tiles.y, smooth_share)  # m ahead
    centre_x = METRE * weighted_mean(obs.tiles.x, centre_share)  # m to the right
    centre_y = METRE * weighted_mean(obs.tiles.y, centre_share)  # m ahead
    heading_from_near = wrap_angle(pi * (obs.tiles.heading - obs.tiles.heading[0]))  # road direction against tile 0, rad to the left
    target_heading = near_heading + weighted_mean(heading_from_near, centre_share)  # road direction at the preview, rad to the left
    smooth_offset = (smooth_x - centre_x) * cos(target_heading) + (smooth_y - centre_y) * sin(target_heading)  # m to the right of the centre line
    line_offset = clip(smooth_offset, -inside_limit, inside_limit)  # cut to the inside of the bend, m to the right
    target_x = centre_x + line_offset * cos(target_heading)  # m to the right
    target_y = centre_y + line_offset * sin(target_heading)  # m ahead

    # --- arc from the car to the target ---
    target_bearing = atan2(target_x, target_y)  # rad to the right
    target_distance = max(sqrt(square(target_x) + square(target_y)), 5.0)  # m
    bearing_size = min(abs(target_bearing), 0.5 * pi)  # beyond a right angle: full turn, rad
    arc_curvature = 2.0 * sign(target_bearing) * sin(bearing_size) / target_distance  # 1/m to the right
    curvature_limit = steer_accel_limit * grip / (square(speed) + 100.0)  # what the tyres can turn, 1/m
    wanted_curvature = clip(arc_curvature, -curvature_limit, curvature_limit)  # 1/m to the right

    # --- steering: kinematic angle and correction of the yaw rate ---
    kinematic_angle = atan2(WHEELBASE * wanted_curvature, 1.0)  # rad to the right
    yaw_error = speed * wanted_curvature - yaw_right  # missing yaw rate, rad/s to the right
    wheel_angle = steer_gain * kinematic_angle + yaw_gain * yaw_error  # rad to the right
    steer_command = clip(wheel_angle, -0.45, 0.45)

    # --- speed wanted: bends ahead, the arc being driven, orientation ---
    long_curvature = wrap_angle(pi * (obs.tiles.heading[8:12] - obs.tiles.heading[0:4])) / (8.0 * TILE)  # mean curvature over 8 tiles, 1/m
    short_curvature = wrap_angle(pi * (obs.tiles.heading[5:12] - obs.tiles.heading[0:7])) / (5.0 * TILE)  # mean curvature over 5 tiles, 1/m
    long_distance = TILE * stack(0.0, 1.0, 2.0, 3.0)  # distance to the start of each long bend, m
    short_distance = TILE * stack(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)  # distance to the start of each short bend, m
    long_bend_speed = min(bend_speed(long_curvature, bend_accel * grip, long_distance, planned_decel * grip))  # m/s
    short_bend_speed = min(bend_speed(short_curvature, kink_accel * grip, short_distance, planned_decel * grip))  # m/s
    arc_speed = sqrt(pursuit_accel * grip / (abs(arc_curvature) + 0.0005))  # m/s
    orientation_speed = where(abs(target_bearing) > turn_round_angle, turn_round_speed, top_speed)  # m/s
    target_speed = min(stack(long_bend_speed, short_bend_speed, arc_speed, orientation_speed))  # m/s
    missing_speed = target_speed - speed  # m/s

    # --- grip that cornering leaves over ---
    lateral_accel = abs(speed * yaw_right)  # m/s2
    planned_lateral_accel = max(lateral_accel, square(speed) * abs(wanted_curvature))  # m/s2
    lateral_tyre_force = 0.25 * CAR_MASS * planned_lateral_accel  # N per tyre
    drive_limit = max(sqrt(square(drive_grip_share * grip * TYRE_LIMIT) - square(lateral_tyre_force)), least_drive_force)  # N per rear tyre
    full_grip_accel = 4.0 * TYRE_LIMIT / CAR_MASS  # acceleration with all four tyres at the limit, m/s2
    decel_limit = max(sqrt(square(brake_grip_share * grip * full_grip_accel) - square(lateral_accel)), least_decel * grip)  # m/s2

    # --- gas: engine law backwards, with traction control ---
    drive_force = drive_limit * clip(throttle_gain * missing_speed, 0.0, 1.0)  # N per rear tyre
    rear_slip = rear_rim_speed - speed  # m/s
    excess_drive_slip = relu(rear_slip - drive_limit / TYRE_SLIP_GAIN - 0.7)  # m/s
    traction_factor = clip(1.0 - traction_cut * excess_drive_slip, 0.0, 1.0)
    gas_command = clip(traction_factor * wheel_inertia_factor * drive_force * (speed + ENGINE_SPEED_OFFSET) / ENGINE_POWER, 0.0, 1.0)

    # --- brake: deceleration wanted, with anti-lock ---
    wanted_decel = clip(-brake_gain * missing_speed, 0.0, decel_limit)  # m/s2
    brake_slip = speed - mean_rim_speed  # m/s
    excess_brake_slip = relu(brake_slip - 0.25 * CAR_MASS * decel_limit / TYRE_SLIP_GAIN - 1.5)  # m/s
    antilock_factor = clip(1.0 - antilock_cut * excess_brake_slip, 0.0, 1.0)
    brake_command = clip(antilock_factor * brake_per_decel * wanted_decel, 0.0, 0.8)

    return action(steer=normal(steer_command, std=0.03), gas=normal(gas_command, std=0.05), brake=normal(brake_command, std=0.02))
