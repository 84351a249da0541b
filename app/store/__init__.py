"""The only SQL. `session` opens the database, `reads` answers questions, `writes` lists every change by its verb.

Values go in and come out: domain values and the rows of `rows`, never a table or a query. To ask something new, add one
function to `reads`; to keep something new, a column in `tables`, a migration, and a verb where its subject lives
(`catalogue`, `jobs`, `results`, `exchange`, `upkeep`). Every write that pages can see begins with `cells.touch`.
"""
