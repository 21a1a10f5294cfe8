"""For maintainers: publishing a prepared benchmark on the Hugging Face Hub. Not part of the installed package."""
