"""Admit a newcomer to a board of another rankwatch over HTTP."""

from urllib.parse import urlencode

from pydantic import ValidationError

from monitor.send.http import DeliveryError, call
from schemas.results.admission import AHEAD, AdmissionAsked, AdmissionTaken, Certificate


class AdmissionPlace:
    """A server that has boards."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url, self._token = url, token

    def admit(self, asked: AdmissionAsked) -> AdmissionTaken:
        """Admit a newcomer, or return what was committed when it was."""
        fields = asked.model_dump(exclude_none=True)
        text, _ = call(self._url, self._token, "POST", "admissions", fields, what="it does not admit the model")
        try:
            return AdmissionTaken.model_validate_json(text)
        except ValidationError:
            raise self._other_version() from None

    def certificate(self, benchmark: str, model: str) -> tuple[Certificate, int]:
        """Return the certificate of a newcomer, and how many of its scores lie ahead of the order."""
        query = urlencode({"benchmark": benchmark, "model": model})
        text, headers = call(
            self._url, self._token, "GET", f"admissions/certificate?{query}", what="it does not report the model"
        )
        try:
            return Certificate.model_validate_json(text), int(headers.get(AHEAD, 0))
        except ValueError:
            raise self._other_version() from None

    def _other_version(self) -> DeliveryError:
        return DeliveryError(f"{self._url}: its answer is not of this version of rankwatch; check the address")
