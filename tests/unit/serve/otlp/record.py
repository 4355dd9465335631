"""Record what the exporters of the OpenTelemetry SDK post: the bodies in this folder, as they came, gzip of protobuf.

The SDK is no dependency of the tests: other libraries load it wherever it is installed. In an environment of its own:

    pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
    python tests/unit/serve/otlp/record.py

Recorded with opentelemetry-sdk 1.45.2: models `a` and `b`, items q0 to q4; `a` is always right and `b` never; each result is an event
of its span and a log record.
"""

import http.server
import threading
from pathlib import Path

from opentelemetry import context
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

FOLDER = Path(__file__).parent


class Recorder(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        assert self.headers["content-encoding"] == "gzip"
        assert self.headers["content-type"] == "application/x-protobuf"
        body = self.rfile.read(int(self.headers["content-length"]))
        (FOLDER / f"{self.path.rpartition('/')[2]}.pb.gz").write_bytes(body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def evaluate(url):
    resource = Resource.create({"service.name": "tiny-eval"})
    spans, records = TracerProvider(resource=resource), LoggerProvider(resource=resource)
    gzip = Compression.Gzip
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces", compression=gzip)))
    records.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs", compression=gzip)))
    tracer, logger = spans.get_tracer("eval"), records.get_logger("eval")
    for model in ("a", "b"):
        for item in range(5):
            of = {"test.case.id": f"q{item}", "gen_ai.request.model": model}
            with tracer.start_as_current_span("chat", attributes=of) as span:
                values = {"gen_ai.evaluation.name": "Correctness", "gen_ai.evaluation.score.value": float(model == "a")}
                span.add_event("gen_ai.evaluation.result", values)
                record = {"attributes": values | of, "context": context.get_current()}
                logger.emit(LogRecord(event_name="gen_ai.evaluation.result", **record))
    spans.force_flush()
    records.force_flush()
    spans.shutdown()
    records.shutdown()


if __name__ == "__main__":
    server = http.server.HTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    evaluate(f"http://127.0.0.1:{server.server_port}")
