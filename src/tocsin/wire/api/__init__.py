"""The REST API's JSON, as pure functions: requests read, answers shaped, errors as problems."""
