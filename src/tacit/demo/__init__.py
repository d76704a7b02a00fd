"""The demonstration behind ``tacit demo``: each part learns something, reports it and draws it."""
