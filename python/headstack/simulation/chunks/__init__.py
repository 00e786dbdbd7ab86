"""Many runs, cut into chunks that are run here or on a cluster and stored when finished."""
