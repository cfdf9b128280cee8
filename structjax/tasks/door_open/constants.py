"""Numbers of Meta-World's door-open-v3, in metres, seconds, kilograms and radians.

Measured in Meta-World 3.1.1 (MIT, the Meta-World authors) on MuJoCo 3.3.0; the task,
its reward and its protocol are theirs. World frame: x to the right and y away from the
robot, z up. The door frame has its origin at the hinge, x along the closed door's panel
away from the hinge and y into the cabinet; the hinge angle theta is 0 when closed and
negative when open.
"""

from typing import Final

TIME_STEP: Final = 0.0125  # one control step
SUBSTEPS: Final = 5  # of 2.5 ms
HORIZON: Final = 500

# Hand: a position-controlled point that follows an integrated target.
HAND_START: Final = (0.004584200424389423, 0.6013881136259892, 0.19514345491770416)
TARGET_START: Final = (0.0, 0.6, 0.2)
TARGET_LOW: Final = (-0.5, 0.4, 0.05)
TARGET_HIGH: Final = (0.5, 1.0, 0.5)
ACTION_SCALE: Final = 0.01  # m that the target moves per step at full action
OPENING_START: Final = 1.0  # open
OPENING_UNIT: Final = 0.1  # m of gap between the claws when the opening is 1
OPENING_CLOSED: Final = 0.3  # opening of a gripper that holds nothing

# Where the door stands; its position is that of the cabinet's centre.
DOOR_LOW: Final = (0.0, 0.85)
DOOR_HIGH: Final = (0.1, 0.95)
DOOR_Z: Final = 0.15
HINGE: Final = (-0.185, -0.1)  # from the door position
HANDLE: Final = (0.3757216301497299, -0.10713989547547983, 3.594872010784e-05)
"""The point that is observed as the handle, in the door frame."""
GOAL: Final = (-0.3, -0.45, 0.0)  # from the door position
THETA_LOW: Final = -2.0
HINGE_INERTIA: Final = 0.15085418  # with the armature, about the hinge
HINGE_DAMPING: Final = 2.0

QUATERNION: Final = (
    0.6907584981379647,
    -0.15062096865140917,
    0.6908786606941268,
    0.15117108602568133,
)
"""Orientation (x, y, z, w) of the handle of a closed door: axes of its mesh."""

# A finger stands upright: a plate, rounded at its edges, on a slide along y.
FINGER_HALF_WIDTH: Final = 0.0105  # along x, without the rounding
FINGER_RADIUS: Final = 0.0045
FINGER_HALF_HEIGHT: Final = 0.045
FINGER_MASS: Final = 100.0  # the armature of its slide
FINGER_TRAVEL: Final = (0.04, 0.03)  # m, right and left

# Collision shapes of the door, in the door frame.
PANEL_X: Final = 0.185  # centre
PANEL_HALF_LENGTH: Final = 0.18  # along x
PANEL_HALF_HEIGHT: Final = 0.123
PANEL_HALF_THICKNESS: Final = 0.01
STEM_X: Final = 0.325
STEM_Y: Final = (-0.018, -0.112)  # ends of its axis
STEM_RADIUS: Final = 0.013
BAR: Final = (0.381, -0.12)  # centre of the bar that is grasped, along the panel
BAR_HALF_LENGTH: Final = 0.075  # with its round ends
BAR_RADIUS: Final = 0.019  # 0.023 in its middle part

# Reward and success.
SUCCESS_DISTANCE: Final = 0.08  # along x alone
SUCCESS_REWARD: Final = 10.0
