"""A scripted toy run that kills itself with SIGKILL at a named phase.

Usage: killed_run.py DIRECTORY PHASE RESUME. Prints the outcome as JSON, with the number
of live requests. Phases: `request:SLOT` (before the model answers), `reply:SLOT` (right
after the reply is on disk), `step:NAME` (right after a unit of work is on disk).
"""

import json
import os
import signal
import sys
from pathlib import Path

from test_refine import REPLIES
from toy import toy_task

from structjax.llm.recorded import RecordedModel
from structjax.llm.scripted import ScriptedModel
from structjax.refinement import RefinementConfig
from structjax.runs import RunDirectory, jsonable
from structjax.session import refine

directory, phase, resume = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "1"
requests = 0


def die(at):
    if at == phase:
        os.kill(os.getpid(), signal.SIGKILL)


def reply(request):
    global requests
    die(f"request:{request.slot}")
    requests += 1
    return REPLIES[request.slot]


def after(method, name):
    def wrapped(self, first, *rest):
        result = method(self, first, *rest)
        die(f"{name}:{getattr(first, 'slot', first)}")
        return result

    return wrapped


RecordedModel.complete = after(RecordedModel.complete, "reply")
RunDirectory.step = after(RunDirectory.step, "step")
outcome = refine(
    toy_task(),
    ScriptedModel(reply),
    config=RefinementConfig(rounds=1),
    directory=directory,
    resume=resume,
)
print(json.dumps({**jsonable(outcome.as_dict()), "requests": requests}))
