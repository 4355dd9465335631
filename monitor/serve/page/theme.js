// Apply the chosen theme before the first paint, so that the page does not flash.
try {
  const theme = localStorage.getItem("rankwatch-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be blocked; the system theme then applies.
}
