"""The documents, and the API's reference, as pages."""
