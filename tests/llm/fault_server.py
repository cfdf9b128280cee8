"""A server on the loopback that speaks both APIs and fails in every way."""

import json
import socket
import struct
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from structjax.llm.model import Message, Request
from structjax.llm.openai import OpenAIModel

KEY = "sk-test-0123456789abcdef"
APIS = ("responses", "chat")
REQUEST = Request(
    "round1/revise", (Message("system", "s" * 8), Message("user", "u" * 4)), 100
)


class Answer:
    """One planned reply of the server: status, body, headers, or a broken wire."""

    def __init__(self, body=b"", status=200, headers=None, wire=None, seconds=0.0):
        self.body = json.dumps(body).encode() if isinstance(body, dict) else body
        self.status = status
        self.headers = headers or {}
        self.wire = wire
        self.seconds = seconds


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        plan = self.server.plan
        answer = plan[min(len(self.server.asked), len(plan) - 1)]
        self.server.asked.append((self.path, body))
        time.sleep(answer.seconds)
        if answer.wire == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        extra = 50 if answer.wire == "cut" else 0
        self.send_header("Content-Length", str(len(answer.body) + extra))
        self.end_headers()
        if answer.wire == "drip":
            for byte in answer.body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.05)
        else:
            self.wfile.write(answer.body)

    def log_message(self, *args):
        pass


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that hang up are part of the tests


def model_at(server, api="chat", **options) -> OpenAIModel:
    url = f"http://127.0.0.1:{server.server_port}/v1"
    options = {"retry_delay_s": 0.0, "deadline_s": 20.0, **options}
    return OpenAIModel(model="m", api=api, base_url=url, api_key=KEY, **options)


def ok(api, text="hello", **changes):
    """A complete reply of either API; changes replace its top-level fields."""
    if api == "responses":
        part = {"type": "output_text", "text": text, "annotations": []}
        usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        body = {
            "id": "r",
            "object": "response",
            "status": "completed",
            "model": "m-1",
            "output": [
                {"type": "reasoning", "id": "x", "summary": []},
                {"type": "message", "role": "assistant", "content": [part]},
            ],
            "usage": usage,
        }
    else:
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        body = {
            "id": "c",
            "object": "chat.completion",
            "model": "m-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }
    return {**body, **changes}


def truncated(api, text="half"):
    if api == "responses":
        details = {"reason": "max_output_tokens"}
        return ok(api, text, status="incomplete", incomplete_details=details)
    choice = {"index": 0, "message": {"content": text}, "finish_reason": "length"}
    return ok(api, choices=[choice])


def filtered(api):
    if api == "responses":
        details = {"reason": "content_filter"}
        return ok(api, status="incomplete", incomplete_details=details, output=[])
    choice = {"message": {"content": None}, "finish_reason": "content_filter"}
    return ok(api, choices=[choice])


def refused(api):
    if api == "responses":
        part = {"type": "refusal", "refusal": "I won't."}
        return ok(api, output=[{"type": "message", "content": [part]}])
    message = {"content": None, "refusal": "I won't."}
    return ok(api, choices=[{"message": message, "finish_reason": "stop"}])


def error(status, message="oops", headers=None, **details):
    body = {"error": {"message": message, **details}}
    return Answer(body, status=status, headers=headers)
