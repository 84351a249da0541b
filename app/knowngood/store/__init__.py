"""The only SQL beside the `store.py` of a room. `engine` opens the database, `queries` answers questions.

Values go in and come out: domain values and those of `records`, never a table or a query. To ask something new, add one
function to `queries`; to keep something new, a column in `tables`, a migration, and a verb where its subject lives
(`catalogue`, `jobs`, `evidence`, `maintenance`); `statements` has what many of them share. Every write that pages can
see begins with `cells.touch`.
"""
