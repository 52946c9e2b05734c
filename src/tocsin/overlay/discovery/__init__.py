"""Resource discovery (paper 001): four models, and answers shared by similar requests."""
