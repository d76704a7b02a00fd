"""Transcripts: a sequence of labels over a longer sequence of frames, whose timing is hidden."""
