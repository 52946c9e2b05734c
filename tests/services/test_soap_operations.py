"""The dispatcher's operations and the WSDL documents list the same messages."""

from __future__ import annotations

from pathlib import Path

import pytest
import uvloop

import wsdl_calls
from tocsin.config import load
from tocsin.drivers.application import Application
from tocsin.drivers.logger import Logger
from tocsin.drivers.soap_services import SoapServices
from tocsin.store.store import Store
from tocsin.wire import wsdl
from tocsin.wire.soap import names

DOCUMENTED = {
    (str(operation.request.namespace), operation.request.localname)
    for service in wsdl.services()
    for _, operation in wsdl_calls.operations(service)
}

# A mailbox stores whatever is sent to its address, so this one has no handler by its name.
STORED_AT_ITS_ADDRESS = {(names.MSGBOX, "storeMessages")}


def _all(namespace: str, *local_names: str) -> set[tuple[str, str]]:
    return {(namespace, name) for name in local_names}


# Whoever adds an operation writes it into a document, or here with the reason why not.
NOT_IN_A_DOCUMENT = {
    "asked before any document is known": {
        (names.WSMID, "Identify"),
        (names.MEX04, "GetMetadata"),
        (names.MEX11, "GetMetadata"),
    },
    "reliable messaging is below the operations; policies announce it, not port types": {
        *_all(names.WSRM10, "CreateSequence", "TerminateSequence", "LastMessage"),
        *_all(names.WSRM10, "AckRequested", "SequenceAcknowledgement"),
        *_all(names.WSRM11, "CreateSequence", "CloseSequence", "TerminateSequence"),
        *_all(names.WSRM11, "AckRequested", "SequenceAcknowledgement"),
    },
    "what another event source sends to its consumer": {
        *_all(names.WSE04, "SubscriptionEnd"),
        *_all(names.WSE11, "SubscriptionEnd", "Notify"),
        *_all(names.WSMAN, "Events", "Heartbeat"),
    },
    "other spellings of the original's operations": {
        *_all(names.WSN10, "Subscribe", "GetCurrentMessage"),
        *_all(names.WSN10, "Unsubscribe", "UnsubscribeRequest", "Unsubsribe"),
        *_all(names.WSN10, "PauseSubscription", "PauseSubscriptionRequest", "PauseSubsription"),
        *_all(names.WSN10, "ResumeSubscription", "ResumeSubscriptionRequest", "ResumeSubsription"),
        *_all(names.MSGBOX.rstrip("/"), "createMsgBox", "takeMessages", "destroyMsgBox"),
    },
    "not in the documents of Globus, which the document of 1.2 follows": {
        *_all(names.PROPERTIES12, "GetMultipleResourceProperties", "QueryResourceProperties"),
        *_all(names.BR12, "RegisterPublisher"),
    },
    "ONVIF clients bring their own documents": {
        *_all(names.ONVIF_DEVICE, "GetHostname", "GetScopes", "GetServiceCapabilities"),
        *_all(names.ONVIF_EVENTS, "Seek"),
    },
}


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str]]:
    """The body elements that a broker's dispatcher has an operation for."""
    directory: Path = tmp_path_factory.mktemp("log")

    async def operations() -> set[tuple[str, str]]:
        settings, _ = load({"http.address": "127.0.0.1:0", "log.directory": str(directory)}, {})
        app = Application(settings, Store.open(directory), Logger())
        try:
            return set(SoapServices(app).dispatcher.operations)
        finally:
            await app.close()

    return uvloop.run(operations())


def test_every_operation_of_a_document_is_answered(answered: set[tuple[str, str]]) -> None:
    assert DOCUMENTED - answered == STORED_AT_ITS_ADDRESS


def test_every_operation_that_is_answered_is_in_a_document(answered: set[tuple[str, str]]) -> None:
    assert answered - DOCUMENTED == set().union(*NOT_IN_A_DOCUMENT.values())
