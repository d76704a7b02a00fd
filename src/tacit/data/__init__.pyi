from tacit.dna.letters import DNA_TEXT as DNA_TEXT
