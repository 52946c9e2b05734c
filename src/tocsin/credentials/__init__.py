"""What this machine keeps to sign in with: tokens, certificates and logins, found and read.

Below the client, because the pipeline's source signs in too. Nothing here opens a socket.
"""
