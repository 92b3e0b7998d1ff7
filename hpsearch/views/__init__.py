"""What people look at: tables, live progress, reports."""
