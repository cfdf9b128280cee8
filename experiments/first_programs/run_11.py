lane_half_width = weight(0.135, sign="+", low=0.06, high=0.175)  # usable half width of the road for the planned line, 33.33 m
centring = weight(0.015, sign="+", low=0.001, high=0.15)  # pull of the planned line to the centre line, relative to its bending stiffness
start_stiffness = weight(2.0, sign="+", low=0.5, high=5.0)  # cost of bending the planned line right at the car
exit_stiffness = weight(1.0, sign="+", low=0.1, high=3.0)  # cost of leaving the planned stretch at an angle to the road
near_share = weight(0.5, sign="+", low=0.05, high=0.95)  # share of the near plan point (7 m) against the next (14 m) in the steering arc
wheelbase = weight(0.097, sign="+", low=0.07, high=0.15)  # wheel angle per path curvature, rad * 33.33 m
yaw_correction = weight(0.15, sign="+", low=0.01, high=0.5)  # wheel angle per yaw rate error, rad per 10 rad/s
grip_limit = weight(0.70, sign="+", low=0.5, high=0.85)  # acceleration at which the tyres slide, 300 m/s^2
corner_grip = weight(0.50, sign="+", low=0.25, high=0.70)  # lateral acceleration planned in bends, 300 m/s^2
curvature_floor = weight(0.30, sign="+", low=0.05, high=1.0)  # curvature error of the plan, added to every bend, 1/33.33 m
planned_deceleration = weight(0.38, sign="+", low=0.12, high=0.65)  # deceleration assumed before a bend, 300 m/s^2
brake_lead = weight(0.08, sign="+", low=0.005, high=0.25)  # distance before a bend point where its speed must be reached, 33.33 m
top_speed = weight(0.95, sign="+", low=0.6, high=1.1)  # highest speed wanted anywhere, 100 m/s
gas_gain = weight(15.0, sign="+", low=3.0, high=40.0)  # gas per missing speed, 1 per 100 m/s
brake_gain = weight(12.0, sign="+", low=3.0, high=30.0)  # brake per excess speed, 1 per 100 m/s
brake_deadband = weight(0.01, sign="+", low=0.001, high=0.05)  # excess speed tolerated without braking, 100 m/s
brake_most = weight(0.60, sign="+", low=0.2, high=0.80)  # strongest brake on a straight, below the locking limit
traction_base = weight(0.043, sign="+", low=0.01, high=0.12)  # gas that just fails to spin the rear wheels at rest
traction_slope = weight(1.60, sign="+", low=0.6, high=3.0)  # growth of that gas with speed, per 100 m/s
traction_use = weight(0.85, sign="+", low=0.4, high=1.2)  # share of the rear traction that is used
spin_slip = weight(0.045, sign="+", low=0.015, high=0.12)  # rear wheel slip at which the gas starts to be cut, 100 m/s
lock_slip = weight(0.035, sign="+", low=0.01, high=0.10)  # braking slip at which the brake starts to be released, 100 m/s
recovery_speed = weight(0.14, sign="+", low=0.05, high=0.3)  # speed while turning back to the driving direction, 100 m/s
recovery_gain = weight(0.8, sign="+", low=0.2, high=2.0)  # wheel angle per bearing of the road while turning back, rad per rad

TILE_GAP = 0.105
NODE_GAP = 0.21
DESCENT_STEP = 0.16
DESCENT_MOMENTUM = 0.85
RIM_SPEED = 1.08
WHEEL_STOP = 0.4
GRASS_EDGE = 0.2


def relax(state, base_x, base_y, side_x, side_y, leave_x, leave_y, limit):
    # one descent step (with momentum) on the bending energy of the line
    # ghost behind car, car, five nodes, ghost beyond, kept inside the lane
    offset = state[0:5]
    last_move = state[5:10]
    line_x = base_x + offset * side_x
    line_y = base_y + offset * side_y
    chain_x = concat(stack(0.0, 0.0), line_x, line_x[4:5] + leave_x)
    chain_y = concat(stack(-NODE_GAP, 0.0), line_y, line_y[4:5] + leave_y)
    stiffness = stack(start_stiffness, 1.0, 1.0, 1.0, 1.0, exit_stiffness)
    bend_x = stiffness * (chain_x[0:6] - 2.0 * chain_x[1:7] + chain_x[2:8])
    bend_y = stiffness * (chain_y[0:6] - 2.0 * chain_y[1:7] + chain_y[2:8])
    long_x = concat(bend_x, bend_x[5:6])
    long_y = concat(bend_y, bend_y[5:6])
    force_x = long_x[0:5] - 2.0 * long_x[1:6] + long_x[2:7]
    force_y = long_y[0:5] - 2.0 * long_y[1:6] + long_y[2:7]
    slope = force_x * side_x + force_y * side_y + centring * offset
    wanted = offset + DESCENT_MOMENTUM * last_move - DESCENT_STEP * slope
    new_offset = max(-limit, min(limit, wanted))
    return concat(new_offset, new_offset - offset)


def arc_curvature(point_x, point_y):
    # curvature (positive to the right) of the circle that starts along the car and meets the point
    return 2.0 * point_x / (point_x * point_x + point_y * point_y + 0.002)


def policy(obs):
    # --- the road in the car's frame ---
    tile_right = obs.tiles.x
    tile_ahead = obs.tiles.y
    road_heading = pi * obs.tiles.heading  # rad, positive to the left
    speed = obs.speed
    yaw_right = -obs.yaw_rate  # positive to the right, 10 rad/s
    here_cos = cos(road_heading[0])
    here_sin = sin(road_heading[0])
    # lateral position of the car, positive right of the centre line
    car_offset = -(tile_right[0] * here_cos + tile_ahead[0] * here_sin)
    # distance along the road to the nearest tile, and the car's place between tiles
    tile_phase = tile_ahead[0] * here_cos - tile_right[0] * here_sin
    shift = clip(-tile_phase / TILE_GAP, -1.0, 1.0)

    # --- centre line every 7 m ahead of the car (quadratic interpolation between tiles) ---
    x_mid = stack(tile_right[2], tile_right[4], tile_right[6], tile_right[8], tile_right[10])
    x_before = stack(tile_right[1], tile_right[3], tile_right[5], tile_right[7], tile_right[9])
    x_after = stack(tile_right[3], tile_right[5], tile_right[7], tile_right[9], tile_right[11])
    y_mid = stack(tile_ahead[2], tile_ahead[4], tile_ahead[6], tile_ahead[8], tile_ahead[10])
    y_before = stack(tile_ahead[1], tile_ahead[3], tile_ahead[5], tile_ahead[7], tile_ahead[9])
    y_after = stack(tile_ahead[3], tile_ahead[5], tile_ahead[7], tile_ahead[9], tile_ahead[11])
    h_mid = stack(road_heading[2], road_heading[4], road_heading[6], road_heading[8], road_heading[10])
    h_before = stack(road_heading[1], road_heading[3], road_heading[5], road_heading[7], road_heading[9])
    h_after = stack(road_heading[3], road_heading[5], road_heading[7], road_heading[9], road_heading[11])
    centre_right = x_mid + 0.5 * shift * (x_after - x_before) + 0.5 * shift * shift * (x_after - 2.0 * x_mid + x_before)
    centre_ahead = y_mid + 0.5 * shift * (y_after - y_before) + 0.5 * shift * shift * (y_after - 2.0 * y_mid + y_before)
    node_heading = h_mid + 0.5 * shift * wrap_angle(h_after - h_before)
    # unit vector to the right across the road at each node
    across_right = cos(node_heading)
    across_ahead = sin(node_heading)
    # the road continues from the last node in this direction
    exit_heading = road_heading[11] + shift * wrap_angle(road_heading[11] - road_heading[10])
    exit_right = -NODE_GAP * sin(exit_heading)
    exit_ahead = NODE_GAP * cos(exit_heading)

    # --- racing line: least bending from the car's pose, inside the lane ---
    lane_limit = lane_half_width + stack(0.02, 0.01, 0.0, 0.0, 0.0)
    held_offset = clip(car_offset, -0.15, 0.15)
    first_guess = held_offset * stack(0.9, 0.7, 0.5, 0.35, 0.25)
    plan_state = concat(first_guess, 0.0 * first_guess)
    for i in range(30):
        plan_state = relax(plan_state, centre_right, centre_ahead, across_right, across_ahead, exit_right, exit_ahead, lane_limit)
    plan_offset = plan_state[0:5]  # planned place on the road, positive right of the centre line
    plan_right = centre_right + plan_offset * across_right
    plan_ahead = centre_ahead + plan_offset * across_ahead

    # --- curvature and distance of the planned points ---
    points_right = concat(plan_right, plan_right[4:5] + exit_right)
    points_ahead = concat(plan_ahead, plan_ahead[4:5] + exit_ahead)
    leg_right = concat(points_right[0:1], points_right[1:6] - points_right[0:5])
    leg_ahead = concat(points_ahead[0:1], points_ahead[1:6] - points_ahead[0:5])
    leg_length = sqrt(square(leg_right) + square(leg_ahead) + 0.0001)
    chord_length = sqrt(square(leg_right[0:5] + leg_right[1:6]) + square(leg_ahead[0:5] + leg_ahead[1:6]) + 0.0001)
    turn_area = leg_ahead[0:5] * leg_right[1:6] - leg_right[0:5] * leg_ahead[1:6]
    plan_curvature = 2.0 * turn_area / (leg_length[0:5] * leg_length[1:6] * chord_length)  # positive to the right
    plan_distance = stack(leg_length[0], sum(leg_length[0:2]), sum(leg_length[0:3]), sum(leg_length[0:4]), sum(leg_length[0:5]))

    # --- grip in use ---
    on_grass = sigmoid((abs(car_offset) - GRASS_EDGE) / 0.015)
    ground_grip = 1.0 - 0.4 * on_grass
    lateral_acceleration = speed * abs(yaw_right) * 10.0 / 3.0  # 300 m/s^2
    lateral_share = lateral_acceleration / (grip_limit * ground_grip)
    grip_left = sqrt(max(0.04, 1.0 - square(lateral_share)))  # share left for gas or brake

    # --- steering: the arc that follows the plan, within the grip ---
    near_arc = arc_curvature(plan_right[0], plan_ahead[0])
    next_arc = arc_curvature(plan_right[1], plan_ahead[1])
    wanted_curvature = near_share * near_arc + (1.0 - near_share) * next_arc
    curvature_limit = grip_limit * 1.1 / (square(speed) + 0.02)
    feasible_curvature = max(-curvature_limit, min(curvature_limit, wanted_curvature))
    wanted_yaw = 0.3 * speed * feasible_curvature  # 10 rad/s, positive to the right
    yaw_error = wanted_yaw - yaw_right
    line_steer = wheelbase * feasible_curvature + yaw_correction * yaw_error

    # --- speed: the bends of the plan and the braking distance to them ---
    bend_speed_squared = corner_grip / (abs(plan_curvature) + curvature_floor)
    free_distance = relu(plan_distance - brake_lead)
    reachable_squared = bend_speed_squared + 2.0 * planned_deceleration * free_distance
    present_squared = corner_grip * ground_grip / (abs(wanted_curvature) + curvature_floor)
    line_speed = min(top_speed, sqrt(min(min(reachable_squared), present_squared)))

    # --- recovery: the car points away from the driving direction ---
    lost = here_cos < 0.2
    road_bearing = atan2(tile_right[3], tile_ahead[3])  # positive to the right
    recovery_steer = recovery_gain * road_bearing
    wheel_target = where(lost, recovery_steer, line_steer)
    steer_command = clip(wheel_target, -WHEEL_STOP, WHEEL_STOP)
    speed_target = where(lost, recovery_speed, line_speed)
    missing_speed = speed_target - speed

    # --- gas within the traction of the rear wheels ---
    rear_slip = RIM_SPEED * mean(obs.wheel_speed[2:4]) - speed
    spin_cut = clip(1.0 - relu(rear_slip - spin_slip) / 0.04, 0.0, 1.0)
    traction_gas = (traction_base + traction_slope * speed) * traction_use * ground_grip * grip_left
    wanted_gas = clip(gas_gain * missing_speed, 0.0, 1.0)
    gas_command = min(wanted_gas, traction_gas * spin_cut)

    # --- brake without locking the wheels ---
    braking_slip = speed - RIM_SPEED * mean(obs.wheel_speed)
    lock_release = clip(1.0 - relu(braking_slip - lock_slip) / 0.04, 0.0, 1.0)
    brake_limit = brake_most * ground_grip * grip_left
    wanted_brake = brake_gain * relu(-missing_speed - brake_deadband)
    brake_command = min(wanted_brake, brake_limit) * lock_release

    return action(steer=normal(steer_command, std=0.03), gas=normal(gas_command, std=0.08), brake=normal(brake_command, std=0.03))
