// A script of its own, not a module: it runs before the first paint, which would show the other colours for a moment.
// The block keeps its names from being global.
{
  const chosen = window.localStorage.getItem('exportd-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
}
