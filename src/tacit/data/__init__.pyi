from tacit.dna.sequences import DNA_TEXT as DNA_TEXT
