import { useSignal } from '@preact/signals';
import type { EstimateResponse } from '../../../http/console/schema.ts';
import { toFailure, type ApiFailure } from '../../api/api_failure.ts';
import { api } from '../../api/client.ts';
import { timezone } from '../../api/session.ts';
import { Button } from '../../components/button.ts';
import { formatBytes } from '../../formatting/bytes.ts';
import { formatCount } from '../../formatting/count.ts';
import { formatInterval } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';
import { consolePath } from './use_preview.ts';

/** How many rows, bytes and files an interval would have. Counting can take long, so it waits to be asked. */
export function EstimatePanel({
  id,
  body,
}: {
  readonly id: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}): View {
  const isBusy = useSignal(false);
  const estimate = useSignal<{ readonly of: string; readonly data: EstimateResponse } | undefined>(undefined);
  const failure = useSignal<ApiFailure | undefined>(undefined);
  const text = JSON.stringify(body);
  const run = async () => {
    isBusy.value = true;
    failure.value = undefined;
    try {
      const data = await api.post<EstimateResponse>(consolePath(id, 'estimate'), body);
      estimate.value = { of: text, data };
    } catch (error) {
      failure.value = toFailure(error);
    } finally {
      isBusy.value = false;
    }
  };
  const data = estimate.value?.of === text ? estimate.value.data : undefined;
  return html`<section class="card edit-panel">
    <h2>Size of an interval</h2>
    <div aria-live="polite">
      ${failure.value && html`<p class="field-error">${failure.value.message.split('\n')[0]}</p>`}
      ${data && html`<${Estimate} data=${data} />`}
      ${!data && !failure.value && html`<p class="muted">Counts the rows of the last day and encodes some of them.</p>`}
    </div>
    <div><${Button} busy=${isBusy.value} onClick=${() => void run()}>Estimate<//></div>
  </section>`;
}

function Estimate({ data }: { readonly data: EstimateResponse }): View {
  if (data.rows === null) return html`<p class="muted">${data.detail}</p>`;
  const { intervals, rows } = data;
  const counted = intervals === 1 ? 'The interval' : `The average of ${formatCount(intervals)} intervals,`;
  const range = formatInterval(data.start, data.end, timezone.value);
  return html`<dl class="facts">
      <div>
        <dt>Rows</dt>
        <dd>${formatCount(data.rows_per_interval)}</dd>
      </div>
      <div>
        <dt>Bytes, about</dt>
        <dd>${formatBytes(data.bytes_per_interval)}</dd>
      </div>
      <div>
        <dt>Files</dt>
        <dd>${formatCount(data.files_per_interval)}</dd>
      </div>
    </dl>
    <p class="muted">${`${counted} ${range}, with ${formatCount(rows)} rows.`}</p>`;
}
