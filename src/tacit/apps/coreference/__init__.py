"""Coreference: who is who in a text, from documents with mentions to clusters, links and a report."""

from tacit.apps.coreference.resolver import CoreferenceResolver, Link

__all__ = ["CoreferenceResolver", "Link"]
