"""What a study would do: `plan` in rows, `footprint` on the disk, `forecast` in one sentence."""
