"""ONVIF: the event service of network cameras, and the little of their device service that their
clients ask for first."""
