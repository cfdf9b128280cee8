lateral_grip = weight(160.0, sign="+", low=80.0, high=230.0)  # cornering acceleration used to plan bend speeds, m/s^2
braking_grip = weight(120.0, sign="+", low=50.0, high=210.0)  # deceleration used to plan braking before bends, m/s^2
line_grip = weight(190.0, sign="+", low=100.0, high=260.0)  # cornering acceleration allowed for the arc being steered now, m/s^2
total_grip = weight(215.0, sign="+", low=150.0, high=260.0)  # acceleration that all four tyres together can give, m/s^2
max_drive = weight(95.0, sign="+", low=40.0, high=115.0)  # largest forward acceleration of the two rear tyres, m/s^2
max_braking = weight(180.0, sign="+", low=60.0, high=215.0)  # largest deceleration asked from the four tyres, m/s^2
top_speed = weight(97.0, sign="+", low=60.0, high=120.0)  # highest speed that the view ahead allows, m/s
reaction_time = weight(0.05, sign="+", low=0.0, high=0.2)  # delay until the brake works, s
speed_gain = weight(12.0, sign="+", low=3.0, high=30.0)  # acceleration asked per speed error, 1/s
look_base = weight(5.0, sign="+", low=1.0, high=15.0)  # look-ahead distance at rest, m
look_time = weight(0.16, sign="+", low=0.03, high=0.4)  # additional look-ahead distance per speed, s
look_width = weight(7.0, sign="+", low=2.0, high=15.0)  # width of the window of tiles aimed at; wider cuts bends more, m
rear_arm = weight(1.5, sign="+", low=0.3, high=3.0)  # distance of the rear axle behind the car's centre, m
slip_per_yaw = weight(0.022, sign="+", low=0.0, high=0.1)  # sideslip angle of the rear tyres per yaw rate, s
yaw_damping = weight(0.25, sign="+", low=0.0, high=1.5)  # share of the yaw rate error corrected by the front wheels
slip_start = weight(3.5, sign="+", low=1.0, high=10.0)  # rear wheel slip at which the gas is taken back, m/s
slip_range = weight(4.0, sign="+", low=0.5, high=15.0)  # additional slip at which the gas is fully off, m/s
grass_grip = weight(0.6, sign="+", low=0.3, high=1.0)  # grip on grass as a share of that on the road
recovery_speed = weight(15.0, sign="+", low=5.0, high=40.0)  # speed while the car points far away from the road direction, m/s
recovery_angle = weight(1.2, sign="+", low=0.5, high=2.5)  # heading error above which the car recovers, rad
unit_length = 33.33
tile_gap = 3.5
wheelbase = 3.23
mass = 7.3
engine_power = 80000.0
engine_speed_offset = 4.0
brake_effect = 1217.0
rim_unit = 108.0
max_wheel_angle = 0.4
road_half_width = 0.2


def bend_speed(grip, curvature):
    limit = sqrt(grip / max(abs(curvature), 0.004))
    return limit


def policy(obs):
    # motion of the car
    speed = 100.0 * obs.speed  # m/s
    yaw_rate = 10.0 * obs.yaw_rate  # rad/s, positive left
    safe_speed = max(speed, 8.0)  # m/s, for divisions
    rear_rim_speed = rim_unit * 0.5 * (obs.wheel_speed[2] + obs.wheel_speed[3])  # m/s
    rear_slip = rear_rim_speed - speed  # m/s, positive: rear wheels spin
    on_grass = abs(obs.tiles.x[0]) > road_half_width
    surface_grip = where(on_grass, grass_grip, 1.0)  # share of the road's grip
    heading_error = pi * obs.tiles.heading[0]  # rad, road direction relative to the car, positive left
    is_turned_away = abs(heading_error) > recovery_angle

    # point aimed at: smoothed centre line at the look-ahead distance
    tile_number = stack(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0)
    tile_distance = tile_gap * tile_number  # m along the road
    look_distance = clip(look_base + look_time * speed, 4.0, 30.0)  # m
    aim_weight = exp(-square((tile_distance - look_distance) / look_width))
    aim_left = -unit_length * weighted_mean(obs.tiles.x, aim_weight)  # m, positive left
    aim_ahead = unit_length * weighted_mean(obs.tiles.y, aim_weight)  # m

    # the car moves along its course, which differs from where its nose points
    course_angle = clip(yaw_rate * (rear_arm / safe_speed - slip_per_yaw), -0.2, 0.2)  # rad, positive: moves left of the nose
    aim_bearing = wrap_angle(atan2(aim_left, aim_ahead) - course_angle)  # rad, positive left
    aim_distance = max(sqrt(square(aim_left) + square(aim_ahead)), 4.0)  # m
    aim_sine = where(abs(aim_bearing) > 0.5 * pi, sign(aim_bearing), sin(aim_bearing))
    arc_curvature = 2.0 * aim_sine / aim_distance  # 1/m, circle through the aim point, positive left

    # steering
    wanted_yaw_rate = clip(speed * arc_curvature, -5.0, 5.0)  # rad/s
    yaw_rate_error = wanted_yaw_rate - yaw_rate  # rad/s
    arc_wheel_angle = atan2(wheelbase * arc_curvature, 1.0)  # rad, positive left
    damping_wheel_angle = clip(yaw_damping * wheelbase * yaw_rate_error / safe_speed, -0.15, 0.15)  # rad, counter-steers a slide
    wheel_angle = clip(arc_wheel_angle + damping_wheel_angle, -max_wheel_angle, max_wheel_angle)  # rad, positive left

    # speed that the road ahead allows
    road_turn = wrap_angle(pi * (obs.tiles.heading[3:12] - obs.tiles.heading[0:9]))  # rad over three tiles
    road_curvature = road_turn / (3.0 * tile_gap)  # 1/m
    bend_limit = bend_speed(lateral_grip * surface_grip, road_curvature)  # m/s at each bend
    braking_distance = relu(tile_distance[0:9] + 0.5 * tile_gap - reaction_time * speed)  # m until each bend
    approach_limit = sqrt(square(bend_limit) + 2.0 * braking_grip * surface_grip * braking_distance)  # m/s now
    road_limit = min(approach_limit)  # m/s
    line_limit = bend_speed(line_grip * surface_grip, arc_curvature)  # m/s on the arc being steered
    normal_speed = min(road_limit, line_limit, top_speed)  # m/s
    target_speed = where(is_turned_away, min(normal_speed, recovery_speed), normal_speed)  # m/s

    # grip left for gas and brake
    lateral_use = max(abs(speed * yaw_rate), square(speed) * min(abs(arc_curvature), 0.13))  # m/s^2
    lateral_share = clip(lateral_use / (total_grip * surface_grip), 0.0, 0.98)
    grip_left = surface_grip * sqrt(1.0 - square(lateral_share))  # share of the grip free for gas and brake

    # gas and brake
    speed_error = target_speed - speed  # m/s
    wanted_acceleration = speed_gain * speed_error  # m/s^2
    drive_acceleration = min(wanted_acceleration, max_drive * grip_left)  # m/s^2
    traction = clip(1.0 - (rear_slip - slip_start) / slip_range, 0.0, 1.0)  # 1: rear wheels grip, 0: they spin
    engine_demand = mass * drive_acceleration * (speed + engine_speed_offset) / engine_power  # gas for this force
    gas_level = clip(where(engine_demand > 0.0, engine_demand * traction, engine_demand), -0.1, 1.0)
    wanted_deceleration = min(-wanted_acceleration, max_braking * grip_left)  # m/s^2
    brake_level = clip(wanted_deceleration / brake_effect, -0.05, 0.2)

    return action(steer=normal(-wheel_angle, std=0.02), gas=normal(gas_level, std=0.03), brake=normal(brake_level, std=0.01))
