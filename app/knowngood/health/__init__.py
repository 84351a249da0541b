"""How good the evidence is: what is missing, contradicted, repeated, voided."""
