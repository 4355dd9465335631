// Apply the chosen theme, and hide a legend that the reader knows, before the first paint, so that the page does not flash.
try {
  document.documentElement.classList.toggle("learned", localStorage.getItem("rankwatch-legend") === "known");
  const theme = localStorage.getItem("rankwatch-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be blocked; the system theme then applies.
}
