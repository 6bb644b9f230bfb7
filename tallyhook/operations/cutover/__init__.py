"""Cut-over: taking the rows of a hand-written handler over, and comparing with it while both run."""
