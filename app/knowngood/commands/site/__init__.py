"""`knowngood site`: the pages as files."""
