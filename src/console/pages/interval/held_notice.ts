import type { IntervalDetailResponse } from '../../../http/console/schema.ts';
import { ActionButton } from '../../components/action_button.ts';
import { retryAction } from '../../components/run_table.ts';
import { formatCount, formatQuantity } from '../../formatting/count.ts';
import { html, type View } from '../../html.ts';

/** Why an interval is held, and what can be done. */
export function HeldNotice({
  detail: { interval, runs },
  reload,
}: {
  readonly detail: IntervalDetailResponse;
  readonly reload: () => unknown;
}): View {
  const { held } = interval;
  const [newest] = runs;
  if (!held) return null;
  return html`<div class="notice">
    <p>
      The source no longer has ${formatCount(held.missing_rows)} of the
      ${' '}${formatQuantity(held.bucket_rows, 'row')} that were exported; it has
      ${formatCount(held.source_rows)}. Nothing was published, and the files stay. To publish what the source
      has, allow fewer rows.
    </p>
    ${newest && html`<${ActionButton} action=${retryAction(newest, reload, { allowShrink: true })} />`}
  </div>`;
}
