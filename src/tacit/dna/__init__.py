"""DNA: letters, files of sequences and motifs, the motif problem, the motif finder and the scanner."""
