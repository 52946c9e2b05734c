"""The SOAP.TCP listener: SOAP envelopes in DIME messages on a plain TCP connection, as in WSE."""
