"""The SOAP.TCP door: SOAP envelopes in DIME messages on a plain TCP connection, as in WSE."""
