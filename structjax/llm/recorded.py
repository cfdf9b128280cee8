"""A provider behind a transcript: nothing is asked, or paid for, twice."""

import threading
from collections.abc import Mapping
from typing import Any, Literal, get_args

from structjax.errors import StructjaxError
from structjax.llm.model import LanguageModel, LLMError, Reply, Request, request_key
from structjax.llm.replay import ReplayModel, TranscriptExhausted, check_request
from structjax.llm.transcript import Transcript

Mode = Literal["live", "extend", "slot", "strict"]


class RecordedModel:
    """Answers from the run's own transcript first, then from others, and records.

    A reply in the run's own transcript is returned exactly as it was recorded, so
    that a resumed run counts what an uninterrupted one would have counted.

    Attributes:
      model: asked live; None in the modes `slot` and `strict`.
      source: a shipped transcript, asked before the model; None in mode `live`.
      transcript: the run's own record.
      mode: `live` (model only), `extend` (source, then model), `slot` and `strict`
        (source only; `strict` also compares resumed requests with their record).
      reused: replies taken from the run's own transcript so far.
    """

    def __init__(
        self,
        model: LanguageModel | None,
        transcript: Transcript,
        mode: Mode = "live",
        *,
        source: ReplayModel | None = None,
    ) -> None:
        if isinstance(model, ReplayModel) and source is None:
            mode = model.mode if mode == "live" else mode
            model, source = None, model
        _check_mode(model, mode, source)
        self.model = model
        self.source = source
        self.transcript = transcript
        self.mode = mode
        self.reused = 0
        self._notes: list[str] = []
        self._asked: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def description(self) -> Mapping[str, str]:
        """What answers."""
        if self.model is not None:
            return self.model.description
        if self.source is not None:
            return self.source.description
        name = str(self.transcript.header.get("model", "unknown"))
        return {"provider": "replay", "model": name}

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for each prompt that differs from the recorded one."""
        return (*self._notes, *(self.source.notes if self.source else ()))

    def complete(self, request: Request) -> Reply:
        """The recorded reply of the request's slot, or a new one, recorded.

        Raises:
          TranscriptExhausted: nothing is recorded and no model may be asked.
          LLMError: the provider failed; recorded too.
        """
        slot = request.slot
        with self._lock:
            occurrence = self._asked.get(slot, 0)
            self._asked[slot] = occurrence + 1
        calls = self.transcript.calls().get(slot, [])
        if occurrence < len(calls):
            call = calls[occurrence]
            strict = self.mode == "strict"
            check_request(request, call, strict=strict, notes=self._notes)
            self.reused += 1
            return call.reply
        try:
            return self._new(request, occurrence)
        except BaseException:
            with self._lock:  # not answered: the same occurrence may be asked again
                self._asked[slot] = occurrence
            raise

    def findings(self, slot: str) -> list[dict[str, Any]] | None:
        """Recorded output of a slot's diagnostics: the run's own, else the source's."""
        own = self.transcript.findings(slot)
        if own is not None or self.source is None:
            return own
        return self.source.findings(slot)

    def unused_slots(self) -> tuple[str, ...]:
        """Slots of the source that the run, earlier processes included, left out."""
        if self.source is None:
            return ()
        known = self.transcript.calls()
        return tuple(slot for slot in self.source.unused_slots() if slot not in known)

    def _new(self, request: Request, occurrence: int) -> Reply:
        """A reply that the run's transcript does not hold yet."""
        if self.source is not None:
            try:
                reply = self.source.answer(request, occurrence)
            except TranscriptExhausted:
                if self.model is None:
                    raise
            else:
                key, attempt = self._record_request(request, "replay")
                self.transcript.record_reply(request.slot, key, attempt, reply)
                return reply
        if self.model is None:
            raise TranscriptExhausted(request.slot, "the run's transcript")
        return self._live(self.model, request)

    def _live(self, model: LanguageModel, request: Request) -> Reply:
        """Asks the model; the request is on disk before, the reply right after."""
        key, attempt = self._record_request(request, model.description["provider"])
        try:
            reply = model.complete(request)
        except StructjaxError as error:
            tries = error.attempts if isinstance(error, LLMError) else ()
            self.transcript.record_failure(
                request.slot, key, attempt, str(error), attempts=tries
            )
            raise
        self.transcript.record_reply(request.slot, key, attempt, reply)
        return reply

    def _record_request(self, request: Request, provider: str) -> tuple[str, int]:
        """Writes a request down; its key, and how often the slot was sent."""
        key = request_key(request)
        attempt = self.transcript.attempts(request.slot) + 1
        self.transcript.record_request(request.slot, key, attempt, request, provider)
        return key, attempt


def _check_mode(
    model: LanguageModel | None, mode: str, source: ReplayModel | None
) -> None:
    """Refuses a mode that contradicts who may answer."""
    problem, remedy = "", ""
    if mode not in get_args(Mode):
        problem, remedy = f"unknown mode {mode!r}", "use live, extend, slot or strict"
    elif mode in ("slot", "strict") and model is not None:
        problem, remedy = f"mode {mode!r} asks no model", "use extend or live"
    elif mode in ("live", "extend") and model is None:
        problem, remedy = f"mode {mode!r} needs a model", "use slot or strict"
    elif mode == "live" and source is not None:
        problem, remedy = "mode 'live' takes no transcript", "use extend"
    if problem:
        raise StructjaxError(problem, kind="llm", hint=remedy)
