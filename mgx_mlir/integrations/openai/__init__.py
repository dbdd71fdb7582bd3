"""Text generation over HTTP in OpenAI's protocol."""
