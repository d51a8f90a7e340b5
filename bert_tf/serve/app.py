"""The addresses of the server: who may send requests, what they contain, and the answers."""

import asyncio
import base64
import contextlib
import functools
import ipaddress
import json
import re
import socket
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
import prometheus_client as prometheus
import tensorflow as tf
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bert_tf.asking import Outputs, encoded
from bert_tf.console import escaped, logger
from bert_tf.errors import UserError
from bert_tf.io.json_files import KINDS, as_json
from bert_tf.serve import rest
from bert_tf.serve.batching import BatchQueue, Columns, QueueClosed, QueueFull
from bert_tf.serve.models import Asking, Models, NotFound, NotReady, Servable, Source
from bert_tf.templates import COLOURS, TEMPLATES, content_hash

Answer = TypeVar("Answer")
Endpoint = Callable[[Request], Awaitable[Response]]

_PLACE = re.compile(
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<number>\d{1,18})|/labels/(?P<label>[^/:]+))?"
    r"(?P<rest>/metadata|:predict|:classify|:regress)?"
)
# The threads that compute Python's answers, and the most requests that run or wait there.
_THREADS, _MOST_IN_THREADS = 64, 512
# The message in an operation's error; the rest says where the operation is.
_REASON = re.compile(r"^(.*)\n\s*\[\[\{\{node", re.MULTILINE)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32)


class Limits(NamedTuple):
    """Limits: bytes and rows of a request, rows that wait, and seconds for a body to arrive."""

    most_bytes: int = 8 * 2**20
    most_rows: int = 1024
    most_waiting: int = 4096
    body_seconds: float = 60


class _ClientGone(Exception):
    """Nobody waits for the answer."""


class _WithInfinity(JSONResponse):
    """JSON that may contain NaN and Infinity, as TensorFlow Serving sends it."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


class Server:
    """All that the addresses of a server share."""

    def __init__(self, found: Sequence[Source], limits: Limits = Limits()):  # noqa: B008
        self._limits = limits
        self._threads, self._in_threads = ThreadPoolExecutor(_THREADS), 0
        self._figures = prometheus.CollectorRegistry()
        own: dict[str, Any] = {"registry": self._figures}
        self._requests = prometheus.Counter(
            "bert_tf_requests", "requests by their address and status", ("path", "status"), **own
        )
        self._seconds = prometheus.Histogram(
            "bert_tf_request_seconds", "seconds to an answer", ("path",), buckets=_SECONDS, **own
        )
        self._rows = prometheus.Histogram(
            "bert_tf_batch_rows", "rows that were computed at once", buckets=_ROWS, **own
        )
        waiting = prometheus.Gauge("bert_tf_waiting_rows", "rows that wait", ("model",), **own)
        self.models = Models(found, self._queue)
        for name in self.models.sources:
            waiting.labels(name).set_function(functools.partial(self._waiting, name))

    def app(self, hosts: Sequence[str] | None) -> ASGIApp:
        """The ASGI app. It accepts the host names `hosts` and this machine's; None accepts any."""
        of_model = _refusing(self._of_model, _error)
        routes = [
            Route("/", self._page),
            Route("/healthz", self._health),
            Route("/metrics", self._metrics),
            Route("/models", self._descriptions),
            Route("/predict", _refusing(self._predict, _error), methods=["POST"]),
            Route("/rerank", _refusing(self._rerank, _reranking_error), methods=["POST"]),
            Route("/v1/embeddings", _refusing(self._embeddings, _openai_error), methods=["POST"]),
            Route("/v1/models", self._list),
            Route("/v1/models/{rest:path}", of_model, methods=["GET", "POST"]),
        ]
        handlers: dict[Any, Any] = {
            HTTPException: lambda request, error: _error(error.status_code, _malformed(request))
        }
        app = Starlette(routes=routes, exception_handlers=handlers)
        return _Guard(app, hosts, self._count)

    def close(self) -> None:
        self.models.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # ---- What all addresses do ---------------------------------------------------------------

    def _queue(self, compute: Callable[[str, Columns], Outputs], lists: Any) -> BatchQueue:
        waiting = self._limits.most_waiting
        return BatchQueue(compute, lists, most_waiting=waiting, computed=self._rows.observe)

    def _waiting(self, name: str) -> int:
        return sum(each.queue.waiting for each in self.models.servables() if each.name == name)

    def _count(self, path: str, status: int, seconds: float) -> None:
        self._requests.labels(path, status).inc()
        self._seconds.labels(path).observe(seconds)

    async def _body(self, request: Request) -> dict[str, Any]:
        """The JSON object that a request sends."""
        most = self._limits.most_bytes
        too_large = HTTPException(413, f"the body has more than {most:,} bytes; send fewer rows")
        declared = request.headers.get("content-length", "0")
        if len(declared) > 18 or (declared.isdecimal() and int(declared) > most):
            raise too_large
        data = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for part in request.stream():
                    data += part
                    if len(data) > most:
                        raise too_large
        except ClientDisconnect:
            raise _ClientGone from None
        except TimeoutError:
            raise HTTPException(408, "the body did not arrive in time") from None
        return rest.parsed(bytes(data))

    def _check_rows(self, count: int) -> None:
        if count > (most := self._limits.most_rows):
            what = f"the request has {count:,} rows or texts in lists"
            raise HTTPException(413, f"{what}; it may have at most {most:,}")

    async def _answered(
        self,
        ask: Callable[[Servable], Awaitable[Answer]],
        name: str | None,
        number: int | None = None,
        label: str | None = None,
    ) -> Answer:
        """The answer of a version or, if it is unloaded meanwhile, of the one that replaced it."""
        asked = None
        while (servable := self.models.find(name, number, label)) is not asked:
            asked = servable
            with contextlib.suppress(QueueClosed):
                return await ask(servable)
        raise QueueClosed

    async def _computed(
        self, request: Request, servable: Servable, signature: str, columns: Columns
    ) -> Outputs:
        """The outputs for columns; rows that nobody waits for any more are not computed."""
        rows = len(next(iter(columns.values())))
        self._check_rows(max(rows, servable.count_texts(signature, columns)))
        if rows == 0:
            shapes = servable.saved.loaded.signatures[signature].output_shapes
            return {name: np.zeros(0) for name in shapes}
        future = asyncio.wrap_future(servable.submit(signature, columns))
        return await _unless_gone(request, future)

    async def _predicted(
        self, request: Request, servable: Servable, rows: list, options: Mapping[str, Any]
    ) -> list[Any]:
        """The answers of `predict`; rows that nobody waits for any more are not computed."""
        asking = Asking(servable)
        try:
            return await self._in_thread(request, lambda: servable.predict(rows, options, asking))
        finally:
            asking.give_up()

    async def _in_thread(self, request: Request, work: Callable[[], Any]) -> Any:
        if self._in_threads >= _MOST_IN_THREADS:
            raise QueueFull
        self._in_threads += 1
        try:
            loop = asyncio.get_running_loop()
            return await _unless_gone(request, loop.run_in_executor(self._threads, work))
        finally:
            self._in_threads -= 1

    # ---- TensorFlow Serving's REST interface --------------------------------------------------

    async def _of_model(self, request: Request) -> Response:
        """Predictions, status and metadata of a model: tensorflow/serving, g3doc/api_rest.md."""
        place = _PLACE.fullmatch(request.scope["path"])
        if place is None:
            return _error(404, _malformed(request))
        name, label, what = place["name"], place["label"], place["rest"]
        number = None if place["number"] is None else int(place["number"])
        if request.method == "POST" and what == ":predict":
            body = await self._body(request)

            async def ask(servable: Servable) -> dict[str, Any]:
                asked = rest.question(body, servable.signatures)
                outputs = await self._computed(request, servable, asked.signature, asked.columns)
                return rest.answer(outputs, asked.by_row)

            return _WithInfinity(await self._answered(ask, name, number, label))
        if request.method == "GET" and what == "/metadata":
            return JSONResponse(_metadata(self.models.find(name, number, label)))
        if request.method == "GET" and what is None:
            version = self.models.find(name, None, label).number if label else number
            return JSONResponse({"model_version_status": self.models.status(name, version)})
        if what in (":classify", ":regress"):
            message = f"{what[1:]} takes tf.Example; the models here take strings: use :predict"
            return _error(501, message)
        return _error(405, _malformed(request))

    # ---- OpenAI's and text-embeddings-inference's interfaces ----------------------------------

    async def _list(self, request: Request) -> Response:
        models = [
            {"id": name, "object": "model", "created": 0, "owned_by": "bert_tf"}
            for name in self.models.sources
        ]
        return JSONResponse({"object": "list", "data": models})

    async def _embeddings(self, request: Request) -> Response:
        """Vectors, as OpenAI's API sends them: "Create embeddings" of its reference."""
        body = await self._body(request)
        _check_names(body, ("model", "input", "encoding_format", "dimensions", "user"))
        name = _value(body, "model", str)
        texts = body.get("input")
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
            raise UserError('"input" must be a text or a list of texts')
        if not texts:
            raise UserError('"input" is empty; give at least one text')
        form = _value(body, "encoding_format", str, "float")
        if form not in ("float", "base64"):
            raise UserError(f'"encoding_format" is {form!r}; it may be float or base64')
        dimensions = _value(body, "dimensions", int, None)
        self._check_rows(len(texts))

        async def ask(servable: Servable) -> tuple[np.ndarray, int]:
            if servable.kind != "TextEmbedder":
                kind = servable.kind or "model without a known task"
                raise UserError(f"{name} is a {kind}, which returns no embeddings")
            if servable.saved.takes_ids:
                rows = [{"text": text} for text in texts]
                vectors = np.array(await self._predicted(request, servable, rows, {}))
                vectors = vectors.astype(np.int8 if vectors.dtype.kind == "i" else np.float32)
            else:
                columns = {"text": np.array([*map(encoded, texts)], object)}
                outputs = await self._computed(request, servable, "serving_default", columns)
                vectors = outputs["embedding"]
            tokens = await self._in_thread(request, lambda: servable.count_tokens(texts))
            return _shortened(vectors, dimensions, servable), tokens

        vectors, tokens = await self._answered(ask, name)
        if form == "base64":
            sent = [base64.b64encode(each.astype("<f4").tobytes()).decode() for each in vectors]
        else:
            sent = as_json(vectors)
        data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(sent)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return JSONResponse({"object": "list", "data": data, "model": name, "usage": usage})

    async def _rerank(self, request: Request) -> Response:
        """Passages by relevance, as text-embeddings-inference's `/rerank` answers."""
        body = await self._body(request)
        shapes = ("raw_scores", "return_text", "truncate", "truncation_direction")
        _check_names(body, ("model", "query", "texts", *shapes))
        query, texts = _value(body, "query", str), _value(body, "texts", list)
        if not texts or not all(isinstance(each, str) for each in texts):
            raise UserError('"texts" must be a list of one text or more')
        raw = _value(body, "raw_scores", bool, False)
        shown = _value(body, "return_text", bool, False)
        if _value(body, "truncation_direction", str, "right").lower() != "right":
            raise UserError('"truncation_direction" must be right; texts are cut at the end')
        cuts = _value(body, "truncate", bool, None)
        self._check_rows(len(texts))
        rankers = [each.name for each in self.models.servables() if each.kind == "Reranker"]
        name = _value(body, "model", str, rankers[0] if len(rankers) == 1 else None)

        async def ask(servable: Servable) -> Response:
            if servable.kind != "Reranker":
                kind = servable.kind or "model without a known task"
                raise UserError(f"{servable.name} is a {kind}, which ranks no passages")
            activation = servable.settings.get("activation")
            if raw and activation == "sigmoid":
                raise UserError(
                    f"{servable.name} returns the sigmoid of its scores; raw_scores requires "
                    "an export with activation: identity"
                )
            row = {"query": query, "passages": texts}
            if cuts is False:
                read = await self._in_thread(request, lambda: servable.tokens(row))
                if read and read["cut"]:
                    raise HTTPException(
                        413,
                        f"the longest input has {read['count']} tokens, and {servable.name} "
                        f"reads {read['max_length']}; send truncate: true, or shorter texts",
                    )
            (found,) = await self._predicted(request, servable, [row], {})
            scores = found["scores"]
            if not raw and activation == "identity":
                scores = tf.sigmoid(tf.constant(scores, tf.float64)).numpy().tolist()
            return JSONResponse(
                [
                    {"index": i, "score": scores[i]} | ({"text": texts[i]} if shown else {})
                    for i in found["order"]
                ]
            )

        return await self._answered(ask, name)

    # ---- Python's answers, and the page -------------------------------------------------------

    async def _predict(self, request: Request) -> Response:
        """What the model's `predict` returns, and with `tokens` the tokens it read of each row."""
        body = await self._body(request)
        _check_names(body, ("model", "inputs", "options", "tokens"))
        name = _value(body, "model", str, None)
        rows, options = _value(body, "inputs", list), _value(body, "options", dict, {})
        shows_tokens = _value(body, "tokens", bool, False)
        self._check_rows(sum(map(_texts_of, rows)))

        async def ask(servable: Servable) -> Response:
            answers = await self._predicted(request, servable, rows, options)
            found = {"model": servable.name, "version": servable.number, "answers": answers}
            if shows_tokens:
                read = await self._in_thread(request, lambda: list(map(servable.tokens, rows)))
                found["tokens"] = read
            return JSONResponse(found)

        return await self._answered(ask, name)

    async def _descriptions(self, request: Request) -> Response:
        found = []
        for name in self.models.sources:
            try:
                servable = self.models.find(name)
            except (NotFound, NotReady) as error:
                found.append({"name": name, "error": str(error)})
                continue
            found.append(await self._in_thread(request, servable.description))
        return JSONResponse({"models": found})

    async def _page(self, request: Request) -> Response:
        content, policy = page()
        return HTMLResponse(content, headers={"Content-Security-Policy": policy})

    async def _health(self, request: Request) -> Response:
        """200 if every model can answer, 503 if one cannot."""
        found = {each.name for each in self.models.servables()}
        missing = [name for name in self.models.sources if name not in found]
        state = {"status": "loading", "models": missing} if missing else {"status": "ok"}
        return JSONResponse(state, 503 if missing else 200)

    async def _metrics(self, request: Request) -> Response:
        content = prometheus.generate_latest(self._figures)
        return Response(content, headers={"Content-Type": prometheus.CONTENT_TYPE_LATEST})


async def _unless_gone(request: Request, future: Awaitable[Any]) -> Any:
    """The result, unless the client goes away first."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    result, left = asyncio.ensure_future(future), asyncio.create_task(gone())
    try:
        await asyncio.wait((result, left), return_when=asyncio.FIRST_COMPLETED)
        if not result.done():
            raise _ClientGone
        return result.result()
    finally:
        result.cancel()
        left.cancel()


def _refusing(answer: Endpoint, error: Callable[[int, str], Response]) -> Endpoint:
    """An endpoint that answers, or refuses with an error in the form of its interface."""

    async def answered(request: Request) -> Response:
        try:
            return await answer(request)
        except _ClientGone:
            return Response(status_code=499)
        except NotFound as refusal:
            status, message = 404, str(refusal)
        except NotReady as refusal:
            status, message = 503, str(refusal)
        except QueueClosed:
            status, message = 503, "the server ends"
        except QueueFull:
            status, message = 429, "too many requests wait for this model; send it again later"
        except UserError as refusal:
            status, message = 400, str(refusal)
        except HTTPException as refusal:
            status, message = refusal.status_code, refusal.detail
        except tf.errors.InvalidArgumentError as refusal:
            reason = _REASON.search(refusal.message)
            status, message = 400, reason[1] if reason else refusal.message.split("\n")[0]
        except RecursionError:
            status, message = 400, "the body is nested too deeply"
        except Exception:
            logger.warning(f"a request failed; this is a bug of bert_tf\n{traceback.format_exc()}")
            status, message = 500, "the server failed; its log says why"
        response = error(status, message)
        if status in (429, 503):
            response.headers["Retry-After"] = "1"
        return response

    return answered


def _error(status: int, message: str) -> Response:
    """An error of TensorFlow Serving's interface, and of the page's."""
    return JSONResponse({"error": message}, status)


def _openai_error(status: int, message: str) -> Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    found = {"message": message, "type": kind, "param": None, "code": None}
    return JSONResponse({"error": found}, status)


def _reranking_error(status: int, message: str) -> Response:
    kind = "Overloaded" if status == 429 else "Validation" if status < 500 else "Backend"
    return JSONResponse({"error": message, "error_type": kind}, status)


def _malformed(request: Request) -> str:
    return f"Malformed request: {request.method} {request.scope['path']}"


def _check_names(body: Mapping[str, Any], known: Sequence[str]) -> None:
    if unknown := body.keys() - {*known}:
        raise UserError(f"{min(unknown)!r} is unknown; a request may have {', '.join(known)}")


def _texts_of(row: Any) -> int:
    """How many texts a row may have in a list; 1 for a row without lists."""
    values = row.values() if isinstance(row, Mapping) else ()
    return max((len(each) for each in values if isinstance(each, list)), default=1)


def _value(body: Mapping[str, Any], name: str, kind: type, default: Any = ...) -> Any:
    """A value of a body; raises UserError if it is missing or of another type."""
    found = body.get(name, default)
    if found is ...:
        raise UserError(f"{name!r} is missing")
    if found is not default and type(found) is not kind:
        raise UserError(f"{name!r} must be {KINDS[kind]}")
    return found


def _shortened(vectors: np.ndarray, dimensions: int | None, servable: Servable) -> np.ndarray:
    """The first numbers of vectors; of unit length again where the model normalizes its vectors."""
    width = vectors.shape[1]
    if dimensions is None or dimensions == width:
        return vectors
    if vectors.dtype != np.float32 or not 0 < dimensions < width:
        raise UserError(
            f"{servable.name} returns {width} numbers of {vectors.dtype.name}; dimensions requires "
            f"float32, and must be from 1 to {width}"
        )
    vectors = vectors[:, :dimensions]
    if servable.settings.get("normalize"):
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors


def _metadata(servable: Servable) -> dict[str, Any]:
    """What TensorFlow Serving says about the signatures of a model."""
    from google.protobuf import json_format
    from tensorflow_serving.apis import get_model_metadata_pb2

    signatures = get_model_metadata_pb2.SignatureDefMap()
    for name, each in servable.signature_defs.items():
        signatures.signature_def[name].CopyFrom(each)
    shown = json_format.MessageToDict(
        signatures, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    spec = {"name": servable.name, "signature_name": "", "version": str(servable.number)}
    return {"model_spec": spec, "metadata": {"signature_def": shown}}


class _Guard:
    """Refuses requests of other web pages, and writes the log.

    Any page in a browser can send a POST to this machine, and a foreign site can make its own name
    resolve to this machine. Such a request names a foreign `Origin` or `Host`.
    """

    def __init__(
        self, app: Starlette, hosts: Sequence[str] | None, count: Callable[[str, int, float], None]
    ):
        self._app, self._count = app, count
        self._paths = {route.path for route in app.routes if isinstance(route, Route)}
        own = {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}
        self._hosts = None if hosts is None else own | {*map(_host_name, hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 499

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        refusal = self._refusal(Request(scope))
        app: ASGIApp = _error(403, refusal) if refusal else self._app
        try:
            await app(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - start
            self._count(self._known(scope["path"]), status, seconds)
            client = (scope.get("client") or ("-",))[0]
            path = escaped(scope["path"])  # a line break in it would begin a new line
            logger.info(f"{client} {scope['method']} {path} {status} {seconds * 1e3:.0f} ms")

    def _refusal(self, request: Request) -> str | None:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        own = [f"{scheme}://{host.lower()}" for scheme in ("http", "https")]
        if origin is not None and origin.lower() not in own:
            return f"a page of {origin} may not send requests to this server"
        name = _host_name(host)
        if self._hosts is None or name in self._hosts:
            return None
        with contextlib.suppress(ValueError):  # no foreign page can point a number elsewhere
            ipaddress.ip_address(name.strip("[]"))
            return None
        return f"{host!r} is not an allowed host name; start the server with --allow {name}"

    def _known(self, path: str) -> str:
        """The address of a request for statistics, which must not grow with what clients send."""
        if (found := _PLACE.fullmatch(path)) is not None:
            return f"/v1/models/NAME{found['rest'] or ''}"
        return path if path in self._paths else "other"


def _host_name(host: str) -> str:
    """The name in a `Host` header, without the port."""
    return re.sub(r":\d*$", "", host.lower()).rstrip(".")


@functools.cache
def page() -> tuple[str, str]:
    """The page, and its Content-Security-Policy, which lets no other script run on it."""
    allowed = {
        f"{kind}-src": content_hash(f"bert_tf/templates/parts.{end}", f"bert_tf/serve/page.{end}")
        for kind, end in (("script", "js"), ("style", "css"))
    }
    allowed |= {"default-src": "'none'", "connect-src": "'self'", "img-src": "data:"}
    allowed |= dict.fromkeys(("base-uri", "form-action", "frame-ancestors"), "'none'")
    # Black, the last one, cannot be seen in dark mode.
    content = TEMPLATES.get_template("bert_tf/serve/page.html").render(colours=COLOURS[:-1])
    return content, "; ".join(f"{name} {value}" for name, value in allowed.items())
