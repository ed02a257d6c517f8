import { timezone } from '../api/session.ts';
import { now } from '../clock.ts';
import { formatMoment, formatRelative } from '../formatting/moment.ts';
import { html, type View } from '../html.ts';

/** A moment, relative to now; its exact time appears on hover. `exact` shows that instead. */
export function Moment({
  at,
  exact = false,
}: {
  readonly at: string | null | undefined;
  readonly exact?: boolean;
}): View {
  if (at === null || at === undefined) return html`<span class="muted">–</span>`;
  const time = formatMoment(at, timezone.value);
  return html`<time class="figures" datetime=${at} title="${time} ${timezone.value}"
    >${exact ? time : formatRelative(at, now.value)}</time
  >`;
}
