// Loaded before the first paint, so that a chosen theme never flashes the other one.
(() => {
  try {
    const theme = localStorage.getItem("tiltyard-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be forbidden; the system's theme is then the right one.
  }
})();
