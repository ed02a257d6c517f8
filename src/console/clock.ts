import { signal } from '@preact/signals';

/** The time in milliseconds, every few seconds. Components that read it show elapsed time without a request. */
export const now = signal(Date.now());

const tickMs = 5_000;

/** Keeps `now` going. Call it once. */
export function startClock(): void {
  window.setInterval(() => {
    now.value = Date.now();
  }, tickMs);
}
