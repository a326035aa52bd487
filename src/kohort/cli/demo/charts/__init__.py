"""What the demo draws: the delays, and who did what when."""
