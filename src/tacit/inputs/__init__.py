"""What users hand in, checked: parameters, labels, tables of feature rows."""
