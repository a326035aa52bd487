"""What Spark runs: plans, and the stages which fetch, join and merge on the executors."""
