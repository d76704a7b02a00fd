"""`tacit label`: a page on this machine on which a person answers the questions that help most.

`journal` keeps answers on disk, `session` learns from them and orders the questions, `server` shows them. What can be
asked is in `boxes`, `masks`, `sites`, `tags`, `sentences` and `clusters`.
"""
