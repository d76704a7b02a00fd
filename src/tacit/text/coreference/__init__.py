"""Coreference resolution: clusters of mentions, with hidden links."""
