lookahead_base = weight(0.08, sign="+", low=0.02, high=0.3)  # aim distance at standstill, 33.33 m
lookahead_time = weight(0.55, sign="+", low=0.2, high=1.2)  # growth of the aim distance with speed, 33.33 m per 100 m/s (0.18 s)
aim_width = weight(0.12, sign="+", low=0.05, high=0.3)  # width of the stretch of road that is averaged to the aim point, 33.33 m
apex_shift = weight(0.06, sign="+", low=0.0, high=0.13)  # largest shift of the aim point to the inside of its bend, 33.33 m
outside_shift = weight(0.035, sign="+", low=0.0, high=0.1)  # largest shift of the aim point to the outside of the bend behind it, 33.33 m
turn_scale = weight(0.5, sign="+", low=0.15, high=1.5)  # turn over four tiles that counts as a real bend, rad
wheelbase = weight(0.097, sign="+", low=0.07, high=0.15)  # effective wheelbase, 33.33 m
yaw_gain = weight(0.02, sign="+", low=0.0, high=0.06)  # steering per missing yaw rate, rad per rad/s
full_grip = weight(0.72, sign="+", low=0.5, high=0.9)  # acceleration at the limit of all four tyres, 300 m/s2
corner_grip = weight(0.48, sign="+", low=0.25, high=0.75)  # lateral acceleration planned for bends, 300 m/s2
brake_grip = weight(0.4, sign="+", low=0.15, high=0.65)  # deceleration planned ahead of bends, 300 m/s2
brake_reaction = weight(0.1, sign="+", low=0.0, high=0.3)  # distance lost until the brake works, 33.33 m per 100 m/s
top_speed = weight(0.86, sign="+", low=0.5, high=1.0)  # highest speed from which the preview is long enough to brake, 100 m/s
recovery_speed = weight(0.2, sign="+", low=0.08, high=0.4)  # speed while the car points away from the road, 100 m/s
misaligned_angle = weight(1.1, sign="+", low=0.7, high=2.0)  # heading error from which the car must recover, rad
gas_gain = weight(15.0, sign="+", low=4.0, high=40.0)  # gas per missing speed, 1 per 100 m/s
brake_gain = weight(12.0, sign="+", low=3.0, high=30.0)  # brake per excess speed, 1 per 100 m/s
brake_cap = weight(0.55, sign="+", low=0.2, high=0.7)  # strongest brake that keeps the wheels rolling on the straight
traction_share = weight(0.8, sign="+", low=0.4, high=1.1)  # share of the rear tyres' free grip used for driving
traction_slope = weight(1.6, sign="+", low=0.8, high=2.5)  # gas at the rear grip limit per speed, 1 per 100 m/s
traction_base = weight(0.06, sign="+", low=0.01, high=0.15)  # gas at the rear grip limit at standstill
slip_start = weight(0.045, sign="+", low=0.02, high=0.1)  # rear wheel slip from which the gas is cut, 100 m/s
slip_gain = weight(20.0, sign="+", low=5.0, high=50.0)  # cut of the gas per rear wheel slip above that, 1 per 100 m/s
TILE_GAP = 0.105
LENGTHS_PER_SECOND = 3.0
RIM_SPEED = 1.08
ROAD_EDGE = 0.22
GRASS_GRIP = 0.6


def policy(obs):
    # where the car is on the road
    tile_angle = pi * obs.tiles.heading  # direction of the road against the car, rad, positive left
    centre_offset = obs.tiles.x[0] * cos(tile_angle[0]) + obs.tiles.y[0] * sin(tile_angle[0])  # centre line to the right of the car, 33.33 m
    misalignment = abs(tile_angle[1])  # heading error against the road, rad
    grip_factor = where(abs(centre_offset) > ROAD_EDGE, GRASS_GRIP, 1.0)  # tyres hold less on grass
    speed = obs.speed  # 100 m/s

    # shape of the road ahead
    turn = wrap_angle(tile_angle[1:12] - tile_angle[0:11])  # turn from tile to tile, rad, positive left
    bend_turn = turn[0:8] + turn[1:9] + turn[2:10] + turn[3:11]  # turn over four tiles, rad, positive left
    bend_curvature = abs(bend_turn) / (4.0 * TILE_GAP)  # curvature of the smoothed line, 1 per 33.33 m
    tile_distance = TILE_GAP * stack(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0)  # way along the road to each tile, 33.33 m
    bend_middle = tile_distance[2:10]  # way to the middle of each four-tile stretch, 33.33 m

    # aim point: a stretch of road ahead, shifted out before a bend and in at the bend
    lookahead = lookahead_base + lookahead_time * speed  # way to the aim point, 33.33 m
    aim_share = exp(-square((tile_distance - lookahead) / aim_width))  # how much each tile belongs to the aim point
    aim_bend_share = exp(-square((bend_middle - lookahead) / aim_width))  # how much each stretch belongs to the aim point
    aim_turn = weighted_mean(bend_turn, aim_bend_share)  # turn of the road at the aim point, rad, positive left
    far_turn = bend_turn[7]  # turn of the road at the end of the view, rad, positive left
    aim_offset = outside_shift * tanh(far_turn / turn_scale) - apex_shift * tanh(aim_turn / turn_scale)  # shift of the aim point to the right, 33.33 m
    aim_x = weighted_mean(obs.tiles.x + aim_offset * cos(tile_angle), aim_share)  # aim point to the right of the car, 33.33 m
    aim_y = weighted_mean(obs.tiles.y + aim_offset * sin(tile_angle), aim_share)  # aim point ahead of the car, 33.33 m
    aim_distance = sqrt(square(aim_x) + square(aim_y) + 0.002)  # 33.33 m
    aim_sine = where(aim_y > 0.0, aim_x / aim_distance, sign(aim_x))  # side of the aim point; full when it is behind

    # steering: the circle through the aim point, as far as the tyres can hold it
    wanted_curvature = 2.0 * aim_sine / aim_distance  # curvature to the right, 1 per 33.33 m
    curvature_limit = full_grip * grip_factor / (square(speed) + 0.01)  # tightest circle at this speed, 1 per 33.33 m
    curvature = clip(wanted_curvature, -curvature_limit, curvature_limit)  # 1 per 33.33 m, positive right
    wanted_yaw = LENGTHS_PER_SECOND * speed * curvature  # rad/s, positive right
    yaw_right = -10.0 * obs.yaw_rate  # rad/s, positive right
    yaw_error = wanted_yaw - yaw_right  # missing turning rate to the right; negative in a spin to the right, rad/s
    steer_geometry = atan2(wheelbase * curvature, 1.0)  # wheel angle of the circle, rad, positive right
    steer_command = clip(steer_geometry + yaw_gain * yaw_error, -0.42, 0.42)  # rad, positive right

    # speed plan: grip in each bend, and braking distance ahead of it
    bend_speed_squared = corner_grip * grip_factor / (bend_curvature + 0.05)  # square of the speed that each stretch allows
    brake_distance = relu(tile_distance[0:8] - brake_reaction * speed)  # way left for braking to the start of each stretch, 33.33 m
    entry_speed = sqrt(bend_speed_squared + 2.0 * brake_grip * grip_factor * brake_distance)  # speed now from which each stretch can be met
    road_speed = min(min(entry_speed), top_speed)  # speed that the road ahead allows, 100 m/s
    safe_speed = where(misalignment > misaligned_angle, recovery_speed, road_speed)  # slow while pointing away from the road
    speed_error = safe_speed - speed  # missing speed, 100 m/s

    # friction circle: what cornering leaves for gas and brake
    lateral_demand = square(speed) * abs(curvature)  # lateral acceleration that is asked for, 300 m/s2
    lateral_now = speed * abs(yaw_right) / LENGTHS_PER_SECOND  # lateral acceleration that is there, 300 m/s2
    lateral_share = clip(max(lateral_demand, lateral_now) / (full_grip * grip_factor), 0.0, 0.96)  # share of the grip used by cornering
    free_grip = sqrt(1.0 - square(lateral_share)) * grip_factor  # share of the grip left along the car

    # gas and brake
    rear_slip = RIM_SPEED * mean(obs.wheel_speed[2:4]) - speed  # rear rims faster than the ground, 100 m/s
    slip_cut = clip(1.0 - slip_gain * (rear_slip - slip_start), 0.0, 1.0)  # 1 while the rear tyres grip, 0 when they spin
    traction_limit = traction_share * (traction_base + traction_slope * speed) * free_grip  # gas that the rear tyres can take
    gas_wish = gas_gain * relu(speed_error)  # gas for the missing speed
    gas_command = clip(min(gas_wish, traction_limit) * slip_cut, 0.0, 1.0)
    brake_limit = brake_cap * free_grip  # brake that keeps the wheels rolling
    brake_wish = brake_gain * relu(-speed_error - 0.005)  # brake for the excess speed
    brake_command = clip(min(brake_wish, brake_limit), 0.0, 0.85)

    return action(steer=normal(steer_command, std=0.03), gas=normal(gas_command, std=0.04), brake=normal(brake_command, std=0.02))
