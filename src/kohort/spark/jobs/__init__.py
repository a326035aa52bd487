"""The Spark jobs of epochs: plans, and the stages that fetch, join and merge on the executors."""
