"""Turn errors of the Kafka client into messages with a fix."""

import logging
from collections.abc import Sequence
from typing import Final

from aiokafka import errors as kafka

_log = logging.getLogger(__name__)

# A sender that has ended raises these for the batches that waited for it; a new sender may still deliver them.
_SENDER_ENDED: Final = (
    kafka.InvalidProducerEpoch,
    kafka.KafkaTimeoutError,
    kafka.OutOfOrderSequenceNumber,
    kafka.ProducerClosed,
    kafka.UnknownProducerId,
)


class BrokerError(OSError):
    """Kafka cannot be reached, or rejects a request; the message ends with the fix."""


def is_transient(error: Exception) -> bool:
    """Return whether an error of the client may go away on its own."""
    if isinstance(error, kafka.KafkaError):
        return isinstance(error, _SENDER_ENDED) or bool(error.retriable)
    return isinstance(error, TimeoutError)


def broker_error(error: Exception, brokers: str) -> BrokerError:
    """Return the error to raise for an error of the client."""
    _log.debug("Kafka at %s: %r", brokers, error)
    advice = next((advice for kinds, advice in _ADVICE if isinstance(error, kinds)), _OTHER_ADVICE)
    return BrokerError(f"Kafka at {brokers}: {advice.format(error=type(error).__name__)}")


_OTHER_ADVICE: Final = "a request failed with {error}; look it up in the brokers' log, then start again"
_ADVICE: Final[Sequence[tuple[tuple[type[Exception], ...], str]]] = (
    (
        (kafka.AuthenticationFailedError, kafka.UnsupportedSaslMechanismError, kafka.IllegalSaslStateError),
        "the brokers refuse the login; check the SASL mechanism, the user and the password",
    ),
    (
        (kafka.TopicAuthorizationFailedError, kafka.ClusterAuthorizationFailedError),
        "this user lacks a permission; grant it Describe and Write on the topics with kafka-acls.sh",
    ),
    (
        (kafka.MessageSizeTooLargeError,),
        "a message is larger than the topic accepts; set its max.message.bytes to 1048588 or more with kafka-configs.sh",
    ),
    (
        (kafka.NotEnoughReplicasError, kafka.NotEnoughReplicasAfterAppendError),
        "fewer replicas are in sync than the topic's min.insync.replicas; bring the missing brokers back",
    ),
    (
        (kafka.UnknownTopicOrPartitionError, kafka.LeaderNotAvailableError, kafka.NotLeaderForPartitionError),
        "the topic, or the leader of one of its partitions, is missing; create the topic, or bring the missing brokers back",
    ),
    (
        (kafka.NotControllerError,),
        "no broker is the controller, which creates topics; bring the missing brokers back, or create the topic yourself",
    ),
    (
        (kafka.KafkaConnectionError, kafka.KafkaTimeoutError, kafka.RequestTimedOutError, TimeoutError),
        "no answer; start the brokers, or correct the address, TLS, the SASL mechanism, the user or the password",
    ),
)
