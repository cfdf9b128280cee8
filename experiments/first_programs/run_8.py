preview_time = weight(0.035, sign="+", low=0.0, high=0.1)  # delay of steering and yaw response over which the pose is predicted, s
usable_half_width = weight(0.12, sign="+", low=0.04, high=0.17)  # largest planned offset of the car from the centre line, 33.33 m
return_slope = weight(0.2, sign="+", low=0.05, high=0.6)  # how fast a car outside that width is planned back in, offset per distance
centre_pull = weight(0.01, sign="+", low=0.001, high=0.2)  # weak preference of the plan for the centre line, relative to bending
lookahead_base = weight(0.2, sign="+", low=0.1, high=0.4)  # distance of the pursued point on the plan at rest, 33.33 m
lookahead_per_speed = weight(0.2, sign="+", low=0.01, high=0.6)  # growth of that distance with speed, 33.33 m per 100 m/s
steer_gain = weight(1.05, sign="+", low=0.7, high=1.6)  # wheel angle relative to the kinematic law (understeer compensation)
steer_grip = weight(220.0, sign="+", low=120.0, high=320.0)  # lateral acceleration above which no more steering is asked, m/s2
recovery_steer_gain = weight(1.0, sign="+", low=0.3, high=3.0)  # wheel angle per bearing of the road when lost, rad per rad
corner_grip = weight(155.0, sign="+", low=80.0, high=230.0)  # lateral acceleration planned in bends, m/s2
centre_share = weight(0.4, sign="+", low=0.02, high=0.98)  # share of the centre line's curvature (against the plan's) in the bend speed
brake_decel = weight(105.0, sign="+", low=40.0, high=200.0)  # deceleration counted on ahead of bends, m/s2
top_speed = weight(0.92, sign="+", low=0.5, high=1.0)  # highest speed wanted anywhere, 100 m/s
lost_speed = weight(0.15, sign="+", low=0.05, high=0.3)  # speed while pointing away from the road, 100 m/s
align_speed = weight(1.5, sign="+", low=0.5, high=4.0)  # speed allowed per rad of alignment that is left, 100 m/s per rad
align_angle = weight(1.0, sign="+", low=0.6, high=1.5)  # heading error at which only the lost speed is allowed, rad
grass_speed = weight(0.25, sign="+", low=0.1, high=0.5)  # speed while well off the road, 100 m/s
edge_speed = weight(5.0, sign="+", low=1.0, high=15.0)  # speed allowed per distance from the far verge, 100 m/s per 33.33 m
verge_offset = weight(0.27, sign="+", low=0.22, high=0.4)  # offset from the centre line at which only the grass speed is allowed, 33.33 m
grass_grip = weight(0.6, sign="+", low=0.4, high=0.9)  # grip on grass relative to the road
tyre_grip = weight(215.0, sign="+", low=150.0, high=260.0)  # total lateral acceleration of all tyres at their limit, m/s2
gas_gain = weight(12.0, sign="+", low=2.0, high=40.0)  # gas per missing speed, 1 per 100 m/s
launch_gas = weight(0.035, sign="+", low=0.01, high=0.08)  # gas that the rear tyres hold from rest
gas_per_speed = weight(1.3, sign="+", low=0.5, high=2.5)  # growth of the holdable gas with speed (constant power), per 100 m/s
slip_limit = weight(7.0, sign="+", low=4.0, high=12.0)  # rear wheel slip at which the gas is closed, m/s
slip_band = weight(3.0, sign="+", low=1.0, high=8.0)  # range of slip below the limit over which the gas is reduced, m/s
yaw_gap_free = weight(1.2, sign="+", low=0.3, high=4.0)  # tolerated difference between yaw rate and kinematic yaw rate, rad/s
yaw_gap_cut = weight(0.4, sign="+", low=0.05, high=2.0)  # share of gas removed per further yaw rate difference, s/rad
brake_gain = weight(8.0, sign="+", low=2.0, high=20.0)  # brake per excess speed, 1 per 100 m/s
brake_deadband = weight(0.006, sign="+", low=0.0005, high=0.05)  # excess speed that is left to the drag, 100 m/s
brake_limit = weight(0.6, sign="+", low=0.3, high=0.8)  # brake at which the tyres are near their limit on a straight

WHEELBASE = 0.097
NODE_GAP = 0.21
STEER_STOP = 0.4
ROAD_EDGE = 0.22
PLAN_STEP = 0.06
MOMENTUM = 0.92


def pursuit_curvature(right, ahead):
    return 2.0 * right / max(square(right) + square(ahead), 0.01)


def policy(obs):
    speed = obs.speed  # 100 m/s

    # pose now, relative to the road
    heading_now = pi * obs.tiles.heading[0]  # road against car, positive: road heads left, rad
    centre_offset = obs.tiles.x[0] * cos(heading_now) + obs.tiles.y[0] * sin(heading_now)  # positive: car left of the centre line
    offset_size = abs(centre_offset)
    grip_share = where(offset_size > ROAD_EDGE, grass_grip, 1.0)  # grip available here

    # pose when a new steering command takes effect
    predicted_turn = clip(10.0 * obs.yaw_rate * preview_time, -0.4, 0.4)  # rad to the left
    predicted_travel = 3.0 * speed * preview_time  # 33.33 m
    _shifted_x = obs.tiles.x + predicted_travel * sin(0.5 * predicted_turn)
    _shifted_y = obs.tiles.y - predicted_travel * cos(0.5 * predicted_turn)
    tile_right = _shifted_x * cos(predicted_turn) + _shifted_y * sin(predicted_turn)  # tiles seen from the predicted pose
    tile_ahead = _shifted_y * cos(predicted_turn) - _shifted_x * sin(predicted_turn)
    tile_heading = wrap_angle(pi * obs.tiles.heading - predicted_turn)  # rad, positive: left

    # every second tile is a node of the plan, from the tile nearest to the predicted pose
    past_first = tile_ahead[1] < 0.05  # tile 1 is nearer than tile 0
    node_right = stack(where(past_first, tile_right[1], tile_right[0]), where(past_first, tile_right[3], tile_right[2]), where(past_first, tile_right[5], tile_right[4]), where(past_first, tile_right[7], tile_right[6]), where(past_first, tile_right[9], tile_right[8]), where(past_first, tile_right[11], tile_right[10]))
    node_ahead = stack(where(past_first, tile_ahead[1], tile_ahead[0]), where(past_first, tile_ahead[3], tile_ahead[2]), where(past_first, tile_ahead[5], tile_ahead[4]), where(past_first, tile_ahead[7], tile_ahead[6]), where(past_first, tile_ahead[9], tile_ahead[8]), where(past_first, tile_ahead[11], tile_ahead[10]))
    node_heading = stack(where(past_first, tile_heading[1], tile_heading[0]), where(past_first, tile_heading[3], tile_heading[2]), where(past_first, tile_heading[5], tile_heading[4]), where(past_first, tile_heading[7], tile_heading[6]), where(past_first, tile_heading[9], tile_heading[8]), where(past_first, tile_heading[11], tile_heading[10]))
    _normal_x = cos(node_heading)  # unit vector to the right of the road
    _normal_y = sin(node_heading)

    # the plan starts at the car, along its axis
    start_offset = clip(-node_right[0] / max(_normal_x[0], 0.3), -0.5, 0.5)  # car's offset at node 0, positive: right of the centre line
    start_ahead = node_ahead[0] + start_offset * _normal_y[0]
    _start_x = node_right[0:2] * 0.0
    _start_y = stack(start_ahead - NODE_GAP, start_ahead)
    _none_one = node_right[0:1] * 0.0
    _none_two = node_right[0:2] * 0.0

    # racing line: the offsets that bend the path least inside the usable road
    _free_x = node_right[1:6]
    _free_y = node_ahead[1:6]
    _free_nx = _normal_x[1:6]
    _free_ny = _normal_y[1:6]
    node_distance = sqrt(square(_free_x) + square(_free_y))
    lane_bound = max(abs(start_offset) - return_slope * node_distance, usable_half_width)  # largest offset at each node
    _line_x = concat(_start_x, _free_x)
    _line_y = concat(_start_y, _free_y)
    _bend_x = _line_x[0:5] - 2.0 * _line_x[1:6] + _line_x[2:7]  # bending of the centre line, entered from the car
    _bend_y = _line_y[0:5] - 2.0 * _line_y[1:6] + _line_y[2:7]
    _force_x = _bend_x - 2.0 * concat(_bend_x[1:5], _none_one) + concat(_bend_x[2:5], _none_two)
    _force_y = _bend_y - 2.0 * concat(_bend_y[1:5], _none_one) + concat(_bend_y[2:5], _none_two)
    line_force = _free_nx * _force_x + _free_ny * _force_y  # how the road's bending pushes each offset, positive: to the left
    _ones = _free_x * 0.0 + 1.0
    _stiff_self = concat(6.0 * _ones[0:3], 5.0 * _ones[3:4], _ones[4:5]) + centre_pull
    _stiff_next = concat(-4.0 * _ones[0:3], -2.0 * _ones[3:4]) * (_free_nx[0:4] * _free_nx[1:5] + _free_ny[0:4] * _free_ny[1:5])
    _stiff_second = _free_nx[0:3] * _free_nx[2:5] + _free_ny[0:3] * _free_ny[2:5]
    plan_offset = _ones * clip(start_offset, -usable_half_width, usable_half_width)  # planned offset, positive: right
    _last_offset = plan_offset
    for i in range(60):
        _guess = plan_offset + MOMENTUM * (plan_offset - _last_offset)
        _last_offset = plan_offset
        _slope = line_force + _stiff_self * _guess + concat(_stiff_next * _guess[1:5], _none_one) + concat(_none_one, _stiff_next * _guess[0:4]) + concat(_stiff_second * _guess[2:5], _none_two) + concat(_none_two, _stiff_second * _guess[0:3])
        plan_offset = max(min(_guess - PLAN_STEP * _slope, lane_bound), -lane_bound)
    plan_right = _free_x + plan_offset * _free_nx  # planned points, from the predicted pose
    plan_ahead = _free_y + plan_offset * _free_ny

    # curvature of the plan and of the road
    _path_x = concat(_start_x, plan_right)
    _path_y = concat(_start_y, plan_ahead)
    _step_x = _path_x[1:7] - _path_x[0:6]
    _step_y = _path_y[1:7] - _path_y[0:6]
    _step_length = sqrt(square(_step_x) + square(_step_y))
    _in_x = _step_x[0:5]
    _in_y = _step_y[0:5]
    _out_x = _step_x[1:6]
    _out_y = _step_y[1:6]
    plan_turn = atan2(_in_y * _out_x - _in_x * _out_y, _in_x * _out_x + _in_y * _out_y)  # rad at each node, positive: right
    path_step = _step_length[1:6]  # from each node to the next, 33.33 m
    plan_curvature = abs(plan_turn) / max(0.5 * (_step_length[0:5] + path_step), 0.05)  # 1 / 33.33 m
    road_curvature = abs(wrap_angle(node_heading[1:6] - node_heading[0:5])) / NODE_GAP  # 1 / 33.33 m
    bend_curvature = centre_share * road_curvature + (1.0 - centre_share) * plan_curvature

    # speed: grip in every bend ahead and braking distance to it
    bend_speed_sq = corner_grip * grip_share / (300.0 * max(bend_curvature, 0.05))  # (100 m/s)^2
    bend_distance = start_ahead
    road_speed = top_speed
    for i in range(5):
        _node_limit = sqrt(bend_speed_sq[i] + brake_decel * grip_share / 150.0 * relu(bend_distance))
        road_speed = min(road_speed, _node_limit)
        bend_distance = bend_distance + path_step[i]
    aligned_speed = lost_speed + align_speed * relu(align_angle - abs(heading_now))  # slow while pointing away from the road
    onroad_speed = grass_speed + edge_speed * relu(verge_offset - offset_size)  # slow while leaving the road
    target_speed = min(road_speed, min(aligned_speed, onroad_speed))
    missing_speed = target_speed - speed

    # steering: arc to the point of the plan at the lookahead distance
    lookahead = lookahead_base + lookahead_per_speed * speed
    near_distance = sqrt(square(plan_right[0]) + square(plan_ahead[0]))
    far_distance = sqrt(square(plan_right[1]) + square(plan_ahead[1]))
    far_share = clip((lookahead - near_distance) / max(far_distance - near_distance, 0.05), 0.0, 1.0)
    near_curvature = pursuit_curvature(plan_right[0], plan_ahead[0])
    far_curvature = pursuit_curvature(plan_right[1], plan_ahead[1])
    wanted_curvature = near_curvature + far_share * (far_curvature - near_curvature)  # positive: right
    grip_curvature = steer_grip * grip_share / (300.0 * max(square(speed), 0.01))  # largest that the tyres can hold
    path_curvature = clip(wanted_curvature, -grip_curvature, grip_curvature)
    path_steer = steer_gain * WHEELBASE * path_curvature

    # recovery: turn towards the road ahead when pointing away from it or far off
    road_bearing = atan2(tile_right[4], tile_ahead[4])  # rad, positive: right
    lost = abs(node_heading[0]) > 1.2 or offset_size > 0.45
    steer_command = clip(where(lost, recovery_steer_gain * road_bearing, path_steer), -STEER_STOP, STEER_STOP)

    # grip left for gas and brake
    lateral_measured = abs(1000.0 * speed * obs.yaw_rate)  # m/s2
    lateral_wanted = abs(300.0 * square(speed) * path_curvature)  # m/s2
    grip_use = clip(max(lateral_measured, lateral_wanted) / (tyre_grip * grip_share), 0.0, 0.95)
    grip_left = sqrt(1.0 - square(grip_use)) * grip_share

    # gas: what the rear tyres can hold, less when they slip or the car over-rotates
    rear_slip = 54.0 * (obs.wheel_speed[2] + obs.wheel_speed[3]) - 100.0 * speed  # m/s
    slip_factor = clip((slip_limit - rear_slip) / slip_band, 0.0, 1.0)
    kinematic_yaw = 3.0 * speed * pi * obs.steer_angle / WHEELBASE  # rad/s, positive: left
    yaw_gap = abs(10.0 * obs.yaw_rate - kinematic_yaw)
    stability_factor = clip(1.0 - yaw_gap_cut * relu(yaw_gap - yaw_gap_free), 0.0, 1.0)
    gas_limit = min((launch_gas + gas_per_speed * speed) * grip_left * slip_factor * stability_factor, 1.0)
    gas_command = clip(gas_gain * missing_speed, 0.0, gas_limit)

    # brake: on excess speed, below the tyre limit
    brake_cap = brake_limit * grip_left
    brake_command = clip(brake_gain * (-missing_speed - brake_deadband), 0.0, brake_cap)

    return action(steer=normal(steer_command, std=0.02), gas=normal(gas_command, std=0.02), brake=normal(brake_command, std=0.01))
