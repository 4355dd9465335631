"""The answer of a gate as text, Markdown, JSON, JUnit and annotations."""
