"""
A stand-in for a language model: a local HTTP server with the form of `/chat/completions`.

It understands nothing. It says what a test tells it to, or fails in the way that a test names; no
figure that it gives says anything about how well a model reads or judges.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "stand-in-1"


def completion(text, *, model=MODEL, finish="stop", **message):
    return json.dumps({
        "object": "chat.completion", "model": model,
        "choices": [{"index": 0, "finish_reason": finish,
                     "message": {"role": "assistant", "content": text, **message}}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3},
    }).encode()  # fmt: skip


@contextmanager
def stand_in(say, *first):
    """
    Serve. `say(system, user)` returns a text, or bytes for a whole body, or a status.

    Each of `first` is what comes instead, once, in order: a status, `(status, headers)`, bytes, or
    `"hang"`, `"drop"`, `"endless"`. Yields the address, and what was asked.
    """
    planned, asked, ended = list(first), [], threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers.get("Authorization"), given))
            system, user = (message["content"] for message in given["messages"])
            said = planned.pop(0) if planned else say(system, user)
            status, headers, body = 200, {}, b"{}"
            match said:
                case "hang":
                    ended.wait(30)
                    return
                case "drop":
                    self.connection.close()
                    return
                case "endless":
                    body = b" " * (1 << 21)
                case int():
                    status = said
                case (int() as status, headers):
                    pass
                case bytes():
                    body = said
                case str():
                    body = completion(said)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            # Whoever has read enough may have left.
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
