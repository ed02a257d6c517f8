import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

/** Also read by theme_before_paint.ts. */
const storageKey = 'exportd-theme';

const isTheme = (text: string | null): text is Theme =>
  text === 'system' || text === 'light' || text === 'dark';

const stored = window.localStorage.getItem(storageKey);

/** The colours that the user chose; `system` follows the setting of the system. */
export const theme = signal<Theme>(isTheme(stored) ? stored : 'system');

/** Chooses the colours and keeps the choice in this browser. */
export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  window.localStorage.setItem(storageKey, chosen);
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}
