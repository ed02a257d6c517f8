import { useSignal } from '@preact/signals';
import type {
  IntervalDetailResponse,
  IntervalFile,
  RowLocationResponse,
} from '../../../http/intervals/detail_schema.ts';
import { api } from '../../api/client.ts';
import { useRequest } from '../../api/resource.ts';
import { Button } from '../../components/actions.ts';
import { TextField } from '../../components/field.ts';
import { Section } from '../../components/page.ts';
import { Table, type Column } from '../../components/table.ts';
import { formatBytes, formatCount, formatQuantity } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';

/** The files of the current manifest, and a field that says which of them holds an event. */
export function Files({
  exportId,
  detail,
}: {
  readonly exportId: string;
  readonly detail: IntervalDetailResponse;
}): View {
  const { files, interval, rejected_file, kept, earlier } = detail;
  const missing = (interval.files ?? 0) - files.length;
  const older = [...kept, ...earlier];
  return html`<${Section} title="Files">
    <${Table}
      caption="Files of the current manifest"
      columns=${columns}
      rows=${files}
      rowKey=${({ key }: IntervalFile) => key}
      empty=${html`<p class="muted">The interval has no rows, so its manifest names no file.</p>`}
    />
    ${missing > 0 && html`<p class="muted">The manifest names ${formatQuantity(missing, 'file')} more.</p>`}
    ${
      rejected_file &&
      html`<p>
        ${formatQuantity(rejected_file.rows, 'row')} that could not be exported: ${' '}<code
          >${rejected_file.key}</code
        >
      </p>`
    }
    ${
      older.length > 0 &&
      html`<p class="muted">
        ${formatQuantity(older.length, 'file')} of earlier generations
        ${' '}${earlier.length > 0 ? 'stay, and readers of persons need them' : 'stay; readers do not need them'}.
      </p>`
    }
    ${files.length > 0 && html`<${RowSearch} exportId=${exportId} start=${interval.data_interval_start} />`}
  <//>`;
}

const columns: readonly Column<IntervalFile>[] = [
  { header: 'Key', render: ({ key }) => html`<code class="file-key">${key}</code>` },
  { header: 'Rows', align: 'right', render: ({ rows }) => formatCount(rows) },
  { header: 'Bytes', align: 'right', render: ({ bytes }) => formatBytes(bytes) },
  { header: 'CRC-32', secondary: true, render: ({ crc32 }) => html`<code>${crc32}</code>` },
  { header: 'First row', secondary: true, render: ({ first }) => html`<${Key} of=${first} />` },
  { header: 'Last row', secondary: true, render: ({ last }) => html`<${Key} of=${last} />` },
];

/** The sort key of a row: when the source received it, and its id. */
function Key({ of: key }: { readonly of: IntervalFile['first'] }): View {
  if (!key) return html`<span class="muted">–</span>`;
  return html`<span class="row-key"
    ><time datetime=${key.inserted_at}>${key.inserted_at}</time><code>${key.id}</code></span
  >`;
}

/** Asks for the uuid of an event and shows the file that holds it. */
function RowSearch({ exportId, start }: { readonly exportId: string; readonly start: string }): View {
  const uuid = useSignal('');
  const path = `batch_exports/${exportId}/intervals/${encodeURIComponent(start)}/row/`;
  const { data, failure, isBusy, run } = useRequest(() =>
    api.get<RowLocationResponse>(path, { uuid: uuid.value.trim() }),
  );
  const search = (event: SubmitEvent) => {
    event.preventDefault();
    void run();
  };
  return html`<form class="card row-search" onSubmit=${search}>
    <${TextField}
      label="Which file holds this event?"
      placeholder="uuid of the event"
      value=${uuid.value}
      onInput=${(value: string) => (uuid.value = value)}
      error=${failure?.message}
      hint="The source says when it received the event, and the first and last keys of the files say where that is."
    />
    <div><${Button} type="submit" busy=${isBusy} disabled=${uuid.value.trim() === ''}>Find<//></div>
    <div aria-live="polite">${data && html`<${RowLocation} found=${data} />`}</div>
  </form>`;
}

function RowLocation({
  found: { file, inserted_at, detail },
}: {
  readonly found: RowLocationResponse;
}): View {
  return html`<div class="row-location">
    ${file && html`<p><code>${file.key}</code></p>`}
    <p class="muted">${detail}${inserted_at !== null && ` The source received it at ${inserted_at}.`}</p>
  </div>`;
}
