"""Door Opening as MJCF of our own: measured numbers and primitive shapes only.

The numbers (joint frames, masses, sizes, contact parameters) were measured on the model
that Meta-World 3.1.1 loads for door-open-v3 (MIT, the Meta-World authors) on MuJoCo
3.3.0. None of its text, meshes or textures is used.

What decides how well results transfer (experiments/door_fidelity): the hand tilts by up
to 38 degrees when it pulls; friction has to hold, so the cone is elliptic, or a pyramid
with harder friction; and cylinders are avoided, because MuJoCo 4.0 computes several
contacts of a cylinder with a box where 3.3.0, which Meta-World pins, computes one.

Shapes are capsules wherever hand and handle touch: a finger, in Meta-World a plate of
0.09 x 0.03 x 0.009 m, is two upright ones. Left out: the robot's reach, which ends
beyond y = 0.75 m, the table, and the cabinet except where the open door presses on it.
"""

from dataclasses import dataclass
from typing import Final, Literal

from structjax.tasks.door_open import constants as c

Arm = Literal["joints", "tilting", "slides"]


@dataclass(frozen=True)
class DoorModel:
    """What the model contains and how it is stepped.

    Attributes:
      arm: what carries the hand: `"joints"`, the robot's seven; `"tilting"`, three
        slides and three hinges with the arm's mean inertia at the hand; `"slides"`,
        the same without hinges.
      gripper_base: whether the gripper's base, 0.07 m above the hand, touches the
        handle.
      guards: whether spheres at the fingers' tips and in the gripper's base keep the
        hand out of the panel.
      substeps: physics steps per control step of 12.5 ms; Meta-World takes 5.
      iterations, line_search: limits of MuJoCo's solver.
      cone: of friction.
      friction_hardness: MuJoCo's impratio; 1 in Meta-World, with an elliptic cone.
    """

    arm: Arm = "tilting"
    gripper_base: bool = True
    guards: bool = True
    substeps: int = 2
    iterations: int = 4
    line_search: int = 8
    cone: Literal["elliptic", "pyramidal"] = "pyramidal"
    friction_hardness: float = 14.0


JOINTED: Final = DoorModel(
    arm="joints",
    substeps=5,
    iterations=50,
    line_search=50,
    cone="elliptic",
    friction_hardness=1.0,
)
"""The most faithful: the whole arm, stepped as Meta-World steps it."""

# Of each link of the arm: its frame in the link before (position, quaternion wxyz),
# mass, centre of mass, inertia there (xx yy zz xy xz yz), range; joints turn about z.
LINKS: Final = (
    ("0 0 0.08", "1 0 0 0", 6.901, "0.020006 0.008452 0.201992",
     "0.144478 0.145799 0.029215 0.00445 0.017698 0.011433", "-3.0503 3.0503"),
    ("0.081 0.05 0.237", "1 -1 1 1", 4.505, "-0.003085 -0.026811 0.092521",
     "0.022398 0.014613 0.017295 -0.00024 -0.000294 -0.006088", "-3.8 -0.5"),
    ("0 -0.14 0.1425", "1 1 0 0", 1.745, "-0.00016 -0.014967 0.13582",
     "0.025506 0.0253 0.003418 0.000004 0.000015 -0.00332", "-3.0426 3.0426"),
    ("0 -0.042 0.26", "1 -1 0 0", 2.5097, "-0.004813 -0.0281 -0.084154",
     "0.01016 0.006569 0.006908 -0.00001 0.000266 0.003032", "-3.0439 3.0439"),
    ("0 -0.125 -0.1265", "1 1 0 0", 1.1137, "-0.001889 0.006899 0.134095",
     "0.013557 0.013556 0.001366 0.000018 0.000135 0.001056", "-2.9761 2.9761"),
    ("0 0.031 0.275", "1 -1 0 0", 1.5625, "0.006113 -0.023697 0.076416",
     "0.004733 0.002968 0.003176 0.000115 0.000046 -0.001156", "-2.9761 2.9761"),
    ("0 -0.11 0.1053", "-0.061625 -0.06163 0.704416 -0.704416", 0.3292,
     "-0.000008 0.008584 -0.004957",
     "0.000311 0.000215 0.00036 0.000001 0 -0.000008", "-4.7124 4.7124"),
)  # fmt: skip

# The arm as felt at the hand, the median over 100 poses of scripted episodes: the
# inverse of J M^-1 J' is that of a body of 4.2 kg whose centre lies 0.26 m above.
CARRIAGE: Final = (
    '<inertial pos="0 0 0.26" mass="4.2" diaginertia="0.1 0.0998 0.0005"/>'
)
SLIDES: Final = (("x", "1 0 0", 60.0), ("y", "0 1 0", 130.0), ("z", "0 0 1", 90.0))
HINGES: Final = (("rx", "1 0 0", 40.0), ("ry", "0 1 0", 12.0), ("rz", "0 0 1", 8.6))
ARMATURE: Final = 0.00044
REST: Final = "0.0008 0 0"
"""What the jointed arm sags more than the carriage, in the hand's axes."""

# MuJoCo softens weld and contacts by a body's inertia as felt at its centre of mass.
# These places of nearly massless centres, in hand and finger, give the carriage's hand
# the ratings of the jointed arm's: 6.1, 285 and 2.85 (1/kg, 1/(kg m^2), 1/kg).
RATED: Final = {
    "joints": (0.12, 0.0),
    "tilting": (0.1411, 0.0745),
    "slides": (0.12, 0.0),
}
DOOR: Final = (0.05, 0.9)  # where the model itself puts it
FINGERS: Final = (
    ("right", -1, f"0 {c.FINGER_TRAVEL[0]}"),
    ("left", 1, f"-{c.FINGER_TRAVEL[1]} 0"),
)
# Bodies without mass still give MuJoCo the place at which it rates their inertia.
_NO_MASS: Final = 'mass="1e-7" diaginertia="1e-10 1e-10 1e-10"'

# The bar has the radius of its middle part, where it is grasped.
HANDLE: Final = f"""\
<geom name="stem" class="handle" size="{c.STEM_RADIUS}"
 fromto="{c.STEM_X} {c.STEM_Y[0]} 0 {c.STEM_X} {c.STEM_Y[1]} 0"/>
<geom name="bar" class="handle" size="0.023" conaffinity="5"
 fromto="{c.STEM_X} {c.BAR[1]} 0 0.437 {c.BAR[1]} 0"/>
"""

# Past -1.31 rad the panel's end presses on the cabinet's front right edge, past -1.465
# rad its corner on the cabinet's front. Stiffness, damping and hardness of the two
# contacts are fitted to Meta-World's hinge accelerations on MuJoCo 3.3.0, at eleven
# angles, three speeds and four torques; friction is in the fit, not in the contacts.
# MuJoCo 4.0 doubles the depth of contacts of boxes and so Meta-World's resistance.
_EDGE: Final = 'solref="-1576 -199.6" solimp="0.998366 0.998366 0.01" condim="1"'
_FACE: Final = 'solref="-3914 -206.6" solimp="0.996252 0.996252 0.01" condim="1"'
STOPS: Final = f"""\
<pair geom1="jamb_edge" geom2="leaf_end" {_EDGE}/>
<pair geom1="jamb_face" geom2="leaf_corner" {_FACE}/>
"""


def door_mjcf(model: DoorModel) -> str:
    """The model as MJCF text. The door stands where the mocap body `door` is put."""
    relpose = "0 0 0" if model.arm == "joints" else REST
    arm = _joints(model) if model.arm == "joints" else _carriage(model)
    x, y, z = c.TARGET_START
    return f"""\
<mujoco model="door_open">
<compiler angle="radian" autolimits="true"/>
{_option(model)}
<default>
<geom contype="0" conaffinity="0"/>
<default class="finger"><geom type="capsule" size="{c.FINGER_RADIUS}" contype="1"
 condim="4" margin="0.001" friction="2 0.1 0.002" solref="0.01 1"
 solimp="0.95 0.99 0.01"/>
</default>
<default class="guard"><geom contype="2" condim="1"/></default>
<default class="handle"><geom type="capsule" conaffinity="1" solref="0.01 1"
 solimp="0.99 0.99 0.01"/></default>
</default>
<worldbody>
<body name="target" mocap="true" pos="{x} {y} {z}" quat="1 0 1 0"/>
{arm}
{_door()}
</worldbody>
<contact>{STOPS}</contact>
<equality>
<weld body1="target" body2="hand" relpose="{relpose} 1 0 0 0" torquescale="5"/>
</equality>
<actuator>
<position joint="right" kp="400" ctrlrange="-1 1"/>
<position joint="left" kp="400" ctrlrange="-1 1"/>
</actuator>
</mujoco>"""


def _option(model: DoorModel) -> str:
    return (
        f'<option timestep="{c.TIME_STEP / model.substeps}" cone="{model.cone}" '
        f'iterations="{model.iterations}" ls_iterations="{model.line_search}" '
        f'impratio="{model.friction_hardness}" tolerance="1e-10"/>'
    )


def _joints(model: DoorModel) -> str:
    """The robot's arm."""
    opened = ""
    for i, (place, turn, mass, centre, inertia, limits) in enumerate(LINKS):
        opened += f"""<body name="link{i}" pos="{place}" quat="{turn}">
<inertial pos="{centre}" mass="{mass}" fullinertia="{inertia}"/>
<joint name="link{i}" axis="0 0 1" range="{limits}" damping="10" armature="0.001"/>
"""
    return opened + _hand(model) + "</body>" * len(LINKS)


def _carriage(model: DoorModel) -> str:
    """One body with the arm's inertia at the hand, on slides and hinges."""
    joints = "".join(
        f'<joint name="{name}" type="slide" axis="{axis}" damping="{damping}"/>'
        for name, axis, damping in SLIDES
    )
    if model.arm == "tilting":
        joints += "".join(
            f'<joint name="{name}" axis="{axis}" damping="{damping}" '
            f'armature="{ARMATURE}"/>'
            for name, axis, damping in HINGES
        )
    x, y, z = c.TARGET_START
    return f"""<body name="carriage" pos="{x} {y} {z}">
{CARRIAGE}{joints}
<body name="wrist" pos="0 0 0.1445" quat="0 -1 1 0">{_hand(model)}</body></body>"""


def _hand(model: DoorModel) -> str:
    """Hand and gripper, in the frame of the arm's last link."""
    ends = "0.003 -0.0243 0.0545 0.003 0.0243 0.0545"
    guard = '<geom class="guard" size="0.025" pos="0.003 0 0.0545" mass="0"/>'
    return f"""<body name="gripper" pos="0 0 0.0245" quat="1 0 0 1">
<inertial pos="0 0 0" {_NO_MASS}/>
<geom name="base" type="capsule" size="0.0267" fromto="{ends}" mass="0"
 contype="{4 * int(model.gripper_base)}"/>{guard if model.guards else ""}
</body>
<body name="hand" pos="0 0 0.1445" quat="1 1 -1 1">
<inertial pos="0 0 {RATED[model.arm][0]}" {_NO_MASS}/>
{"".join(_finger(model, *finger) for finger in FINGERS)}
</body>
"""


def _finger(model: DoorModel, name: str, side: int, limits: str) -> str:
    """A finger: an upright plate on a slide, slow as in Meta-World (100 kg)."""
    radius, width = c.FINGER_RADIUS, c.FINGER_HALF_WIDTH
    half = f"{c.FINGER_HALF_HEIGHT - radius:g}"
    inner = 0.0015 * -side
    tip = f'<geom class="guard" size="{radius}" pos="{half} {inner} 0" mass="0"/>'
    ends = f"-{half} {inner} {{z}} {half} {inner} {{z}}"
    return f"""<body name="{name}" pos="0 {0.05 * side} 0">
<inertial pos="0 0 {RATED[model.arm][1]}" mass="0.0162"
 diaginertia="0.000001 0.000012 0.000011"/>
<joint name="{name}" type="slide" axis="0 1 0" range="{limits}" damping="1000"
 armature="{c.FINGER_MASS}"/>
<geom class="finger" fromto="{ends.format(z=width)}"/>
<geom class="finger" fromto="{ends.format(z=-width)}"/>{tip if model.guards else ""}
</body>
"""


def _door() -> str:
    """Cabinet and door; the cabinet moves to the episode's place."""
    size = f"{c.PANEL_HALF_LENGTH} {c.PANEL_HALF_THICKNESS} {c.PANEL_HALF_HEIGHT}"
    return f"""<body name="door" mocap="true" pos="{DOOR[0]} {DOOR[1]} {c.DOOR_Z}">
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<geom name="jamb_edge" size="0.0015" pos="-0.188 -0.1045 0"/>
<geom name="jamb_face" type="plane" size="1 1 1" pos="-0.2 -0.1055 0" zaxis="0 -1 0"/>
<body name="leaf" pos="{c.HINGE[0]} {c.HINGE[1]} 0">
<inertial pos="0.223702 -0.020428 0" quat="0.555446 0.555434 0.437591 0.437592"
 mass="2.229822" diaginertia="0.043618 0.037338 0.01169"/>
<joint name="hinge" axis="0 0 1" range="{c.THETA_LOW} 0" damping="{c.HINGE_DAMPING}"
 armature="0.001"/>
<geom name="leaf_end" type="box" size="0.05 0.1 0.1" pos="0.055 0 0" mass="0"/>
<geom name="leaf_corner" size="0.0005" pos="0.005 -0.01 0" mass="0"/>
<geom name="panel" type="box" size="{size}" pos="{c.PANEL_X} 0 0" conaffinity="2"
 condim="1" mass="0"/>
{HANDLE}</body></body>"""
