"""`structjax rl` as a user gives it."""

import json
import shutil

import pandas as pd
import pytest
from cli.commands import TOY, refused, run
from rl_runs import write_manifest

from structjax.cli import main
from structjax.cli.rl import _is_network
from structjax.rl.presets import resolved

PROGRAM = '''"""Push against the offset."""

gain = weight(0.3, sign="+")  # push per metre


def policy(obs):
    return action(push=normal(-gain * obs.x, std=0.2))
'''
SHORT = ("--task", TOY, "--preset", "group", "--resets", 40, "--training-seeds", 2)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs") / "push.py"
    path.write_text(PROGRAM)
    return path


def trained(capsys, *arguments):
    code, out, err = run(capsys, "rl", *arguments, "--json")
    assert code == 0, err
    return json.loads(out.splitlines()[-1])


def test_a_program_is_trained_and_can_be_played_compared_and_resumed(
    capsys, program, tmp_path
):
    directory = tmp_path / "run"
    found = trained(capsys, program, *SHORT, "--milestones", 20, "--run", directory)
    assert [row["seed"] for row in found["seeds"]] == [0, 1]
    assert [row["resets"] for row in found["seeds"]] == [40, 40]
    assert found["ledger"]["resets"]["training"] == 80
    table = pd.read_csv(directory / "evaluations.csv")
    assert set(table["checkpoint"]) == {
        "start", "resets20", "best20", "final", "best",
    }  # fmt: skip
    for row in found["seeds"]:
        own = table[table["training_seed"] == row["seed"]]
        chosen = own.query("checkpoint == 'best' and mode == 'mean'")
        assert row["best_mean_mode"] == pytest.approx(chosen["return"].mean())

    code, out, err = run(capsys, "evaluate", directory, "--task", TOY, "--json")
    assert code == 0, err
    means = {row["best_mean_mode"] for row in found["seeds"]}
    assert json.loads(out.splitlines()[-1])["mean"] in [pytest.approx(m) for m in means]

    again = trained(capsys, "--resume", directory)
    assert again["seeds"] == found["seeds"]
    assert again["ledger"] == found["ledger"]

    code, out, err = run(
        capsys, "compare", f"{directory}@final", f"{directory}@start", "--json"
    )
    assert code == 0, err


def test_a_trained_policy_is_a_start_for_more(capsys, program, tmp_path):
    first = trained(capsys, program, *SHORT, "--run", tmp_path / "first")
    second = trained(capsys, first["best_policy"], *SHORT, "--run", tmp_path / "second")
    start = second["seeds"][0]["start_mean_mode"]
    ends = [row["best_mean_mode"] for row in first["seeds"]]
    assert start in [pytest.approx(value, rel=1e-5) for value in ends]


def test_a_network_is_trained_saved_and_played(capsys, tmp_path):
    directory = tmp_path / "run"
    found = trained(
        capsys, "mlp", "--hidden", 8, *SHORT, "--preset", "network", "--run", directory,
        "--settings", "learning_rate=0.01", "--settings", "epochs=2",
    )  # fmt: skip
    assert found["preset"] == "network"
    assert _is_network(str(directory))  # as a start it is a network again
    starts = [row["start_mean_mode"] for row in found["seeds"]]
    assert starts[0] != starts[1]  # each seed draws its own network
    code, out, err = run(
        capsys, "evaluate", found["best_policy"], "--task", TOY, "--json"
    )
    assert code == 0, err
    best = [row["best_mean_mode"] for row in found["seeds"]]
    mean = json.loads(out.splitlines()[-1])["mean"]
    assert mean in [pytest.approx(value, rel=1e-5) for value in best]
    assert "is a network" in refused(
        capsys, "graph", found["best_policy"], "--task", TOY
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--resets", 19), "19 resets are fewer than the 20 of one update"),
        (("--preset", "trpo"), "unknown preset 'trpo'; accepted: recommended, "),
        (("--settings", "epoch=3"), "setting 'epoch=3'"),
        (("--settings", "epochs=many"), "option epochs is 'many'"),
        (("--settings", "gamma=2"), "option gamma is 2.0"),
        (("--settings", "epochs=99999999999"), "option epochs is 99999999999"),
        (("--settings", "learning_rate=1e39"), "option learning_rate is 1e+39"),
        (("--resets", 10**9), "1000000000 resets of up to 5 steps are more than"),
        (("--settings", "ratio=sum"), "option ratio is 'sum'"),
        (("--tracks", "995:1005"), "training seed 1000 is one of the test seeds"),
        (("--training-seeds", 0), "option training_seeds is 0"),
        (("--milestones", 30), "milestone 30 resets"),
        (("--run", "a", "--resume", "b"), "--run and --resume were both given"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    capsys, program, arguments, words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    given = arguments if "--resets" in arguments else ("--resets", 40, *arguments)
    given = ("--preset", "group", *given)
    assert words in refused(capsys, "rl", program, "--task", TOY, *given)
    assert not (tmp_path / "runs").exists()


def test_a_covariance_of_a_network_is_refused_before_a_run_begins(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    given = ("rl", "mlp", "--task", TOY, "--resets", 640, "--preset", "es")
    line = refused(capsys, *given, "--settings", "strategy=cma_es")
    assert "strategy cma_es keeps a covariance of all weights" in line
    assert "--settings strategy=sep_cma_es" in line
    assert not (tmp_path / "runs").exists()


def test_recommended_is_a_strategy_for_programs_and_one_for_networks():
    assert resolved("recommended", network=False) == "es_small"
    assert resolved("recommended", network=True) == "es_network"
    assert resolved("group", network=True) == "group"


def test_no_policy_and_a_missing_one(capsys, tmp_path):
    assert "no policy was named" in refused(capsys, "rl")
    line = refused(capsys, "rl", tmp_path / "none.py", "--task", TOY)
    assert f"there is no policy '{tmp_path / 'none.py'}'; give a program" in line


@pytest.mark.parametrize("name", ["network", "MLP", "nn"])
def test_what_is_no_policy_says_how_a_new_network_is_named(capsys, name):
    line = refused(capsys, "rl", name)
    assert f"there is no policy '{name}'" in line
    assert line.endswith("or mlp for a new network")
    assert ("(it is a preset: --preset network)" in line) == (name == "network")


def test_a_setting_of_another_preset_is_told_with_the_presets(capsys, program):
    # Of the default preset, es_small for programs, and of none.
    given = ("rl", program, "--task", TOY, "--settings")
    line = refused(capsys, *given, "clip_low=0.1")
    assert "setting 'clip_low=0.1' is no option of the preset es_small; choose" in line
    assert line.endswith("paper, group, network, gspo, grpo, reinforce, ppo")
    line = refused(capsys, *given, "population=9", "--preset", "ppo")
    assert "is no option of the preset ppo; choose" in line
    assert line.endswith("--preset: es, es_small, es_network")
    line = refused(capsys, *given, "clip=0.1")
    assert "is no option of the preset es_small, nor of another; es_small has" in line
    assert "is not name=value" in refused(capsys, *given, "learning_rate")


def test_a_run_is_not_resumed_with_another_recipe(capsys, program, tmp_path):
    directory = tmp_path / "run"
    trained(capsys, program, *SHORT, "--run", directory)
    line = refused(
        capsys, "rl", "--resume", directory, "--settings", "learning_rate=0.5"
    )
    assert "started with another config" in line


def test_a_run_from_before_the_mappings_goes_on(capsys, program, tmp_path):
    directory = tmp_path / "run"
    trained(capsys, program, *SHORT, "--run", directory)
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest["config"].pop("mapping") == "vmap"
    path.write_text(json.dumps(manifest))
    assert run(capsys, "rl", "--resume", directory)[0] == 0


# Steps of 1e37 take the mean action beyond all numbers.
EXPLOSIVE = '''"""Push a thousand times the weight."""

gain = weight(0.3)  # push per metre


def policy(obs):
    return action(push=normal(-gain * obs.x * 1000, std=0.2))
'''


def test_a_policy_that_can_no_longer_be_played_leaves_a_whole_run(capsys, tmp_path):
    program, directory = tmp_path / "explosive.py", tmp_path / "run"
    program.write_text(EXPLOSIVE)
    found = trained(
        capsys, program, *SHORT, "--preset", "reinforce", "--run", directory,
        "--settings", "learning_rate=1e37", "--settings", "fall=0",
    )  # fmt: skip
    lost = [row["final_mean_mode"] is None for row in found["seeds"]]
    curve = pd.read_csv(directory / "curve.csv")
    assert any(lost)
    assert curve["mean"].isna().any()
    assert all(row["best_mean_mode"] is not None for row in found["seeds"])
    best = curve.loc[curve["mean"].idxmax(), "training_seed"]
    assert found["best_policy"].endswith(f"seed{best}_best.json")
    # Without `--json` too, and from its checkpoints.
    code, out, err = run(capsys, "rl", "--resume", directory)
    assert code == 0, err
    assert "nan" in out


def test_a_failed_training_seed_is_told_beside_the_others(
    capsys, program, tmp_path, monkeypatch
):
    def failures(returns, first):
        assert returns.shape[1] == 2
        return {1: 2}  # seed 1 in its last update, 40 resets at 20 each

    monkeypatch.setattr("structjax.rl.training.failures", failures)
    directory = tmp_path / "run"
    found = trained(capsys, program, *SHORT, "--run", directory)
    first, second = found["seeds"]
    assert first["note"] is None
    assert second["note"] == "failed: a return of update 2 is not finite"
    assert second["start_mean_mode"] == first["start_mean_mode"]
    for name in ("final_mean_mode", "final_sampled_mode", "best_mean_mode"):
        assert first[name] is not None
        assert second[name] is None
    assert second["resets"] == 40
    assert found["best_policy"].endswith("seed0_best.json")
    saved = {path.name for path in (directory / "params").glob("*")}
    assert saved == {"seed0_start.json", "seed0_final.json", "seed0_best.json"}
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["failed_seeds"] == [1]
    _, out, _ = run(capsys, "rl", "--resume", directory)
    lines = out.splitlines()
    assert [line.split().count("failed") for line in lines[3:5]] == [0, 3]
    assert "(over 1 training seed)" in out
    assert lines[-1] == "training seed 1 failed: a return of update 2 is not finite"
    line = refused(capsys, "compare", f"{directory}@final", f"{directory}@start")
    assert "values of return are not finite, the first at training_seed 1" in line


def test_outcomes_are_compared_over_the_seeds_that_did_not_fail(
    capsys, tmp_path, monkeypatch
):
    file = tmp_path / "told.py"
    file.write_text(
        "from dataclasses import replace\nfrom toy import toy_task\n"
        "def told():\n"
        "    return replace(toy_task(), outcomes={'far': ('distance', 'max')})\n"
    )
    monkeypatch.setattr("structjax.rl.training.failures", lambda *_: {1: 2})
    given = ("--task", f"{file}:told", *SHORT[2:], "--hidden", 4)
    found = trained(capsys, "mlp", *given, "--run", tmp_path / "run")
    table = pd.read_csv(tmp_path / "run" / "evaluations.csv")
    starts = table.query("checkpoint == 'start' and mode == 'mean'")
    mean = starts.groupby("training_seed")["outcome_far"].mean()
    assert mean[0] != pytest.approx(mean[1], rel=1e-3)
    assert found["outcomes"]["far"]["start"] == pytest.approx(mean[0])


def test_a_task_without_training_seeds_needs_tracks(capsys, program, tmp_path):
    file = tmp_path / "untrained.py"
    file.write_text(
        "import dataclasses\nfrom toy import toy_task\n\n\ndef task():\n"
        "    whole = toy_task()\n"
        "    seeds = {k: v for k, v in whole.seeds.items() if k != 'training'}\n"
        "    return dataclasses.replace(whole, seeds=seeds)\n"
    )
    line = refused(capsys, "rl", program, "--task", f"{file}:task")
    assert "no 'training' seeds" in line
    assert "--tracks A:B" in line


@pytest.fixture(scope="module")
def finished(tmp_path_factory, program):
    directory = tmp_path_factory.mktemp("finished") / "run"
    with pytest.raises(SystemExit):
        main(["rl", *map(str, (program, *SHORT, "--run", directory))])
    return directory


@pytest.mark.parametrize("name", ["start", "chunk2", "flops", "evaluation"])
@pytest.mark.parametrize("result", [None, "x", [3], {"a": 1}, [{"run": "a"}]])
def test_a_changed_result_is_one_line(capsys, finished, tmp_path, name, result):
    directory = tmp_path / "run"
    shutil.copytree(finished, directory)
    path = directory / "checkpoints" / f"{name}.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "result": result}))
    line = refused(capsys, "rl", "--resume", directory)
    assert f"{name}.json is not a result of {name}" in line
    assert "delete it" in line


def test_a_run_of_another_command_says_whose_it_is(capsys, finished, tmp_path):
    line = refused(capsys, "refine", "--resume", finished)
    assert "is a run of `structjax rl`" in line
    assert f"continue it with `structjax rl --resume {finished}`" in line
    assert "it has no rounds to report" in refused(capsys, "report", finished)
    write_manifest(tmp_path / "run", kind="refine")
    line = refused(capsys, "rl", "--resume", tmp_path / "run")
    assert "is a run of `structjax refine`" in line


def test_another_recipe_is_told_by_what_differs(capsys, finished):
    line = refused(
        capsys, "rl", "--resume", finished, "--settings", "learning_rate=0.5"
    )
    assert "(recipe.learning_rate: 0.03 there, 0.5 now)" in line


@pytest.mark.parametrize("begun", [False, True])
def test_ctrl_c_is_one_line_and_one_object(
    capsys, program, finished, tmp_path, monkeypatch, begun
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    directory = tmp_path / "run"
    arguments = (program, *SHORT, "--run", directory)
    if begun:
        shutil.copytree(finished, directory)
        arguments = ("--resume", directory)
    target = "save_trained" if begun else "check_noise"
    with monkeypatch.context() as patched:
        patched.setattr(f"structjax.rl.starting.{target}", interrupt)
        code, out, err = run(capsys, "rl", *arguments, "--json")
    assert code == 130
    assert "Traceback" not in err
    error = json.loads(out.splitlines()[-1])["error"]
    assert error["kind"] == "interrupted"
    wanted = f"continue with `structjax rl --resume {directory}`" if begun else ""
    assert error["hint"] == wanted
    if begun:
        assert trained(capsys, "--resume", directory)["run"] == str(directory)


def test_a_command_line_that_is_not_understood_is_one_object(capsys):
    code, out, _ = run(capsys, "rl", "mlp", "--resets", "ten", "--json")
    assert code == 2
    assert json.loads(out.splitlines()[-1])["error"]["kind"] == "options"
