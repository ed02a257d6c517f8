import type { IntervalStatus } from '../../http/intervals/schema.ts';
import { html, type View } from '../html.ts';
import { intervalLooks } from './statuses.ts';
import { StatusSign } from './status_badge.ts';

/** What the shapes and colours of intervals mean. */
export function IntervalLegend({ statuses }: { readonly statuses: readonly IntervalStatus[] }): View {
  return html`<ul class="legend">
    ${statuses.map(
      (status) =>
        html`<li key=${status}>
          <${StatusSign} look=${intervalLooks[status]} />${intervalLooks[status].label}
        </li>`,
    )}
  </ul>`;
}
