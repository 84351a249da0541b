"""The seed of what is drawn: the same in every run of CI, so that its outcome says something of the change alone; drawn
anew by `make soak`. KNOWNGOOD_SOAK_SEED repeats a run: it is printed with every failure.
"""

import os

SEED = int(os.environ.get("KNOWNGOOD_SOAK_SEED", "1"))
