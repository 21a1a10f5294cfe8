"""Reading a model's answer: infrastructure failures told apart, reasoning stripped."""
