"""The newest attempt of each (issue, arm, variant) as SQL of both databases, without SQLAlchemy, which takes 0.25 s to
import.
"""

# From one (issue, arm, variant) to the next before it along `ix_attempts_newest`, where grouping reads every attempt.
# SQLite begins at what is equal too, so that a time stands behind the three; and with columns on the right (without
# || '') it uses the index for the first alone.
NEWEST = """
    WITH RECURSIVE newest (id) AS (
        SELECT id FROM (
            SELECT id FROM attempts WHERE counts_as <> 'env_error' AND finished_at < :before
            ORDER BY issue DESC, arm DESC, variant DESC, finished_at DESC LIMIT 1
        ) AS first
        UNION ALL
        SELECT (
            SELECT id FROM attempts WHERE counts_as <> 'env_error' AND finished_at < :before
            AND (issue, arm, variant, finished_at)
              < (this.issue || '', this.arm || '', this.variant || '', '0001-01-01')
            ORDER BY issue DESC, arm DESC, variant DESC, finished_at DESC LIMIT 1
        ) FROM newest JOIN attempts AS this ON this.id = newest.id
    )
    SELECT issue, arm, variant, started_at, finished_at FROM newest JOIN attempts USING (id)
"""
