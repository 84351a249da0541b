"""The newest attempt of each (issue, arm, variant) as SQL of both databases, without SQLAlchemy, which takes 0.25 s to
import.
"""

# From one (issue, arm, variant) to the next before it along `ix_attempts_newest`: grouping reads every attempt, and this
# as many as it finds. SQLite uses the index for all three only where what they are compared with is no column (|| '').
NEWEST = """
    WITH RECURSIVE newest (id) AS (
        SELECT id FROM (
            SELECT id FROM attempts WHERE counts_as <> 'env_error' AND finished_at < :before
            ORDER BY issue DESC, arm DESC, variant DESC, finished_at DESC LIMIT 1
        ) AS first
        UNION ALL
        SELECT (
            SELECT id FROM attempts WHERE counts_as <> 'env_error' AND finished_at < :before
            AND (issue, arm, variant) < (this.issue || '', this.arm || '', this.variant || '')
            ORDER BY issue DESC, arm DESC, variant DESC, finished_at DESC LIMIT 1
        ) FROM newest JOIN attempts AS this ON this.id = newest.id
    )
    SELECT issue, arm, variant, started_at, finished_at FROM newest JOIN attempts USING (id)
"""
