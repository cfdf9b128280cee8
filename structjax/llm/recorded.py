"""A provider behind a transcript: nothing is asked, or paid for, twice."""

import threading
from typing import Any

from structjax.errors import StructjaxError
from structjax.llm.model import LanguageModel, LLMError, Reply, Request, request_key
from structjax.llm.replay import ReplayModel, TranscriptExhausted, check_request
from structjax.llm.transcript import Transcript


class RecordedModel:
    """Answers from the run's own transcript first, then from others, and records.

    A reply in the run's own transcript is returned exactly as it was recorded, so
    that a resumed run counts what an uninterrupted one would have counted.

    Attributes:
      model: what answers: a live one, or a transcript to replay.
      source: the transcript that is replayed; beside a live model, the one it extends.
      transcript: the run's own record.
    """

    def __init__(
        self,
        model: LanguageModel,
        transcript: Transcript,
        *,
        source: ReplayModel | None = None,
    ) -> None:
        self.model = model
        self.source = model if isinstance(model, ReplayModel) else source
        self.transcript = transcript
        self.description = model.description
        self._notes: list[str] = []
        self._asked: dict[str, int] = {}
        self._lock = threading.Lock()

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
            strict = self.source is not None and self.source.mode == "strict"
            check_request(request, call, strict=strict, notes=self._notes)
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
                if self.source is self.model:
                    raise
            else:
                key, attempt = self._record_request(request, "replay")
                self.transcript.record_reply(request.slot, key, attempt, reply)
                return reply
        return self._live(request)

    def _live(self, request: Request) -> Reply:
        """Asks the model; the request is on disk before, the reply right after."""
        key, attempt = self._record_request(request, self.description["provider"])
        try:
            reply = self.model.complete(request)
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
