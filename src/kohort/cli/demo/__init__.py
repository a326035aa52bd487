"""`kohort demo`: a streams application in PySpark on a year of real flights, through a crash, beside a batch job."""
