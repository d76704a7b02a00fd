"""How learners with hidden values descend: several starts, where they begin, and what a step is."""
