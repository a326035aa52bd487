"""Members of groups, each library in its own processes; Java's are beside them. What they took is printed as JSON."""
