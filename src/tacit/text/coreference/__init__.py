"""Coreference: clusters of mentions, explained by hidden links."""
