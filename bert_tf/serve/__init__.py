"""`bert-tf serve`: exports behind the interfaces that clients use already, and a page for people.

Clients of TensorFlow Serving's REST interface work unchanged with this server, and vice versa. One
process computes on the CPU; for GPUs and many machines there is TensorFlow Serving.
"""

import ipaddress
import signal
import socket
import threading
from collections.abc import Sequence
from typing import NoReturn

import uvicorn

from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.serve.app import Limits, Server
from bert_tf.serve.models import sources


def serve(
    models: Sequence[str],
    host: str = "127.0.0.1",
    port: int = 8501,
    allow: Sequence[str] = (),
    limits: Limits = Limits(),  # noqa: B008
) -> None:
    """Serves models until the process is stopped; the port 0 takes a free one."""
    server = Server(sources(models), limits)
    with _listening(host, port) as listener:
        config = uvicorn.Config(
            server.app(allow),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=30,  # seconds for requests to end after SIGTERM
        )
        web, failures = uvicorn.Server(config), []

        def load() -> None:
            try:
                server.models.prepare()
                server.models.load()
            except Exception as error:
                failures.append(error)
                web.should_exit = True
                return
            logger.info(f"ready: {', '.join(server.models.sources)}; {url}")
            server.models.watch()

        name = f"[{host}]" if ":" in host else host
        url = f"http://{name}:{listener.getsockname()[1]}/"
        logger.info(f"listening at {url}, loading {', '.join(server.models.sources)}")
        if not _is_local(host):
            logger.warning(f"everyone in the network can send requests to this server at {host}")
        loading = threading.Thread(target=load, daemon=True)
        # Without a handler the signal, which uvicorn raises again, would end the process at once.
        before = signal.signal(signal.SIGTERM, _stop)
        try:
            loading.start()
            web.run([listener])
        finally:
            server.close()
            if loading.is_alive():
                loading.join(10)  # seconds
            signal.signal(signal.SIGTERM, before)
        if failures:
            raise failures[0]


def _stop(*_: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError, UnicodeError) as error:
        raise UserError(
            f"cannot listen at {host}, port {port}: {error}; choose others with --host and --port"
        ) from None
    return listener


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
