import { signal } from '@preact/signals';
import { timezone } from '../api/client.ts';
import { formatMoment, formatRelative } from '../formatting/format.ts';
import { html, type View } from '../html.ts';

/** The time in milliseconds, every few seconds. Components that read it show elapsed time without a request. */
export const now = signal(Date.now());

const tickMs = 5_000;

/** Keeps `now` going. Call it once. */
export function startClock(): void {
  window.setInterval(() => {
    now.value = Date.now();
  }, tickMs);
}

/** A moment, relative to now; its exact time and zone appear on hover. `exact` shows those instead. */
export function Moment({
  at,
  exact = false,
}: {
  readonly at: string | null | undefined;
  readonly exact?: boolean;
}): View {
  if (at === null || at === undefined) return html`<span class="muted">–</span>`;
  const time = `${formatMoment(at, timezone.value)} ${timezone.value}`;
  return html`<time class="figures" datetime=${at} title=${time}
    >${exact ? time : formatRelative(at, now.value)}</time
  >`;
}
