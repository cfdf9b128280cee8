"""Options out of range: refused in one line, before anything is computed."""

import json
import subprocess
import sys

import pytest
from cli.commands import TOY, refused, run
from toy import PROGRAM

from structjax.cli.main import _parse
from structjax.cli.output import seed_range


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


BAD_FIT = [
    ("--restarts", "0", "in [1, 4096]"),
    ("--restarts", "1000000000000", "in [1, 4096]"),
    ("--num-updates", "0", "in [1, 1000000]"),
    ("--num-updates", "10000000000", "in [1, 1000000]"),
    ("--batch-size", "0", "of at least 1"),
    ("--validate-every", "-3", "of at least 1"),
    ("--validation-blocks", "1", "of at least 2"),
    ("--learning-rate", "nan", "a finite number"),
    ("--learning-rate", "-1", "a finite number"),
    ("--learning-rate", "inf", "a finite number"),
    ("--learning-rate", "0", "a finite number"),
    ("--final-learning-rate", "nan", "in [0, 1]"),
    ("--validation-share", "0.95", "in [0, 0.9]"),
    ("--validation-share", "nan", "in [0, 0.9]"),
    ("--anchor", "inf", "a finite number"),
    ("--anchor", "-1", "a finite number"),
    ("--std-floor", "nan", "in [0, 1]"),
]
BAD_REFINE = [
    ("--rounds", "-1", "in [0, 10000]"),
    ("--extra-tests", "-1", "in [0, 10000]"),
    ("--max-calls", "0", "of at least 1"),
    ("--max-calls", "-2", "of at least 1"),
    ("--max-tokens", "0", "of at least 1"),
    ("--max-seconds", "nan", "a finite number"),
    ("--max-seconds", "inf", "a finite number"),
    ("--max-seconds", "0", "a finite number"),
    ("--seed", "-1", "in [0, 4294967295]"),
    ("--seed", "4294967296", "in [0, 4294967295]"),
]


@pytest.mark.parametrize(("option", "value", "accepted"), BAD_FIT)
def test_a_fit_option_out_of_range(capsys, program, option, value, accepted):
    fit = ("fit", program, "--task", TOY, "--demonstration", "x", option, value)
    line = refused(capsys, *fit)
    assert accepted in line
    code, out, _ = run(capsys, *fit, "--json")
    assert code == 2
    assert accepted in json.loads(out.splitlines()[-1])["error"]["hint"]


@pytest.mark.parametrize(("option", "value", "accepted"), [*BAD_FIT, *BAD_REFINE])
def test_a_refine_option_out_of_range(capsys, option, value, accepted):
    assert accepted in refused(capsys, "refine", TOY, option, value)


@pytest.mark.parametrize("value", ["-1", "4294967296", "1" * 30])
@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "--key"),
        ("rollout", "--key"),
        ("fit", "--demonstration", "x", "--seed"),
    ],
)
def test_a_seed_that_no_generator_takes(capsys, program, arguments, value):
    command, *options = arguments
    line = refused(capsys, command, program, "--task", TOY, *options, value)
    assert "[0, 4294967295]" in line


@pytest.mark.parametrize(
    "seeds", ["-5:3", "4294967290:4294967300", "0:1000000000", f"{9**30}:{9**31}"]
)
def test_seeds_that_no_generator_takes_or_no_memory_holds(capsys, program, seeds):
    line = refused(capsys, "evaluate", program, "--task", TOY, f"--seeds={seeds}")
    assert "in [0, 4294967295]" in line or "at most 65,536" in line


def test_the_last_seed_is_accepted():
    assert list(seed_range("4294967294:4294967296", {})) == [2**32 - 2, 2**32 - 1]


def test_options_go_on_top_of_a_preset():
    fit = ("fit", "p.py", "--demonstration", "x", "--preset", "paper")
    plain = _parse([*fit]).config
    assert (plain.restarts, plain.validation_share) == (1, 0.0)
    # 8 is the default without a preset, and still what was asked for.
    mixed = _parse([*fit, "--restarts", "8", "--num-updates", "7"]).config
    assert (mixed.restarts, mixed.num_updates) == (8, 7)
    assert (mixed.validation_share, mixed.final_learning_rate) == (0.0, 1.0)


@pytest.mark.parametrize("fit", ["imitation", "anchored"])
def test_a_fit_of_a_program_without_weights_saves_it_as_written(capsys, tmp_path, fit):
    from test_failing_programs import FIXED, demonstration
    from toy import SCHEMA

    from structjax.demonstration import save_demonstration

    save_demonstration(demonstration(), tmp_path / "demo.npz", SCHEMA)
    (tmp_path / "fixed.py").write_text(FIXED)
    output = tmp_path / "policy.json"
    code, out, _ = run(
        capsys,
        *("fit", tmp_path / "fixed.py", "--task", TOY, "--fit", fit),
        *("--demonstration", tmp_path / "demo.npz", "--output", output),
    )
    assert code == 0
    assert "The program has no weights to fit." in out
    assert run(capsys, "evaluate", output, "--task", TOY)[0] == 0


@pytest.mark.parametrize("fit", ["imitation", "anchored"])
def test_a_fit_that_fails_is_one_line(capfd, tmp_path, fit):
    from test_failing_programs import NAN, demonstration
    from toy import SCHEMA

    from structjax.demonstration import save_demonstration

    save_demonstration(demonstration(), tmp_path / "demo.npz", SCHEMA)
    (tmp_path / "nan.py").write_text(NAN)
    line = refused(
        capfd,
        *("fit", tmp_path / "nan.py", "--task", TOY, "--fit", fit),
        *("--demonstration", tmp_path / "demo.npz"),
        *("--output", tmp_path / "p.json", "--num-updates", "10", "--restarts", "2"),
    )
    assert "no restart of the fit has a finite likelihood" in line


def command(program, stdout, **environment):
    """A command in its own process: exit status and stderr."""
    import os

    result = subprocess.run(
        [sys.executable, "-m", "structjax", "check", program, "--task", TOY],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=os.environ | {"JAX_PLATFORMS": "cpu"} | environment,
        check=False,
    )
    return result.returncode, result.stderr.decode()


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_full_stdout_is_one_line(program):
    with open("/dev/full", "w") as full:
        code, err = command(program, full)
    assert code == 2
    assert err.startswith("structjax: error: ")
    assert "No space left on device" in err
    assert err.count("\n") == 1


def test_what_the_terminal_cannot_show_is_escaped(program, tmp_path):
    program.write_text(PROGRAM.replace("push per metre", "Stoß"), "utf-8")
    with (tmp_path / "out").open("wb") as out:
        code, err = command(program, out, PYTHONIOENCODING="ascii")
    assert (code, err) == (0, "")
    assert b"Sto\\xdf" in (tmp_path / "out").read_bytes()


def test_a_rollout_of_a_policy_that_fails_shows_the_table_and_says_so(capfd, tmp_path):
    from test_failing_programs import NAN

    (tmp_path / "nan.py").write_text(NAN)
    output = tmp_path / "table.parquet"
    arguments = ("rollout", tmp_path / "nan.py", "--task", TOY, "--output", output)
    code, out, err = run(capfd, *arguments)
    assert code == 2
    assert "[fail] finite: not finite: action_push_mean in 40 of 40 steps" in out
    lines = err.splitlines()
    assert lines[-1].startswith("structjax: error: the policy's action is not finite")
    assert "Warning" not in err
    assert output.exists()
    code, out, _ = run(capfd, *arguments, "--json")
    assert code == 2
    assert json.loads(out.splitlines()[-1])["error"]["kind"] == "policy"
