"""Text generation over HTTP, as clients of OpenAI ask for it."""
