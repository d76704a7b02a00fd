"""Motifs in DNA: found, tested on sequences that were held out, compared with known ones, looked for in others."""
