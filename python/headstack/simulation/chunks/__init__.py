"""Many runs, cut into chunks that are carried out here or on a cluster and kept once finished."""
