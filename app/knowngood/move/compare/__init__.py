"""Two builds side by side: fixed, newly broken, still failing."""
