"""MT-Video-Bench: multi-turn dialogues over one video, judged by yes/no checklists."""
