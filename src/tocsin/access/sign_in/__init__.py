"""Who somebody is: by a token, a certificate, or an OpenID Connect issuer."""
