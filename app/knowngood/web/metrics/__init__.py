"""`/metrics`, `/healthz`, `/readyz` and the access log."""
