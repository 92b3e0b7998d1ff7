"""What processes that ask for trials write into the database: that they are alive."""
