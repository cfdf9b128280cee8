"""The loopback server as a fixture."""

import threading

import pytest
from llm.fault_server import Handler, QuietServer


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    server = QuietServer(("127.0.0.1", 0), Handler)
    server.plan, server.asked = [], []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
