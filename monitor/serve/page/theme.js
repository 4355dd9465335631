// Runs before the first paint, so that a chosen theme does not flash; the button is wired by app.js.
try {
  const theme = localStorage.getItem("rankwatch-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden: the system's theme then stands.
}
