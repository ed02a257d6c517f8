import type { ProofEntry, SignedProof } from '../../../http/proofs/schema.ts';
import { useResource } from '../../api/resource.ts';
import { Button, CommandLines, CopyBlock } from '../../components/actions.ts';
import { Loaded, Page, Section } from '../../components/page.ts';
import { type Column, Facts, Table } from '../../components/table.ts';
import {
  formatBytes,
  formatCount,
  formatInterval,
  formatMoment,
  formatQuantity,
} from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import { type PageProps, paths } from '../../router/paths.ts';

/** A signed proof of a month of an export, to print or to send. The newest month that has ended is shown first. */
export default function ProofPage({ params }: PageProps): View {
  const id = params.id ?? '';
  const month = currentQuery.value.get('month') ?? monthOf(-1);
  const resource = useResource<SignedProof>(`batch_exports/${id}/proof/?month=${encodeURIComponent(month)}`);
  return html`<${Page}
    title="Proof of ${month}"
    parents=${[
      { title: 'Exports', path: paths.exports },
      { title: resource.data?.proof.batch_export.name ?? 'Export', path: paths.export(id) },
    ]}
    actions=${html`<label class="proof-month"
        >Month
        <input
          class="input"
          type="month"
          value=${month}
          onChange=${(event: Event) => setQuery({ month: (event.target as HTMLInputElement).value || null })}
      /></label>
      <${Button} onClick=${() => window.print()}>Print<//>`}
  >
    <${Loaded} resource=${resource}>${(signed: SignedProof) => html`<${Statement} signed=${signed} />`}<//>
    <${CommandLines}
      request=${{
        method: 'GET',
        path: `batch_exports/${id}/proof/?month=${month}`,
        command: ['export', 'proof', id, '--month', month, '--json'],
      }}
    />
  <//>`;
}

/** A month relative to the current one, as `2026-10`. */
function monthOf(offset: number): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset)).toISOString().slice(0, 7);
}

const entryColumns = (zone: string): readonly Column<ProofEntry>[] => [
  { header: 'Interval', render: ({ start, end }) => formatInterval(start, end, zone) },
  {
    header: 'State',
    render: ({ status, exported, intervals }) => status ?? `${exported} of ${intervals} exported`,
  },
  { header: 'Rows in source', align: 'right', render: (one) => formatCount(one.source_rows) },
  { header: 'Rows in files', align: 'right', render: (one) => formatCount(one.file_rows) },
  { header: 'Rejected', align: 'right', render: (one) => formatCount(one.rejected_rows) },
  {
    header: 'Fingerprint',
    render: ({ file_fingerprint, is_equal }) =>
      html`<code>${file_fingerprint?.sum ?? '–'}</code>
        ${is_equal === false ? 'differs from the source' : ''}`,
  },
  { header: 'Compared', render: ({ compared_at }) => formatMoment(compared_at, zone) },
];

function Statement({ signed: { proof, signature } }: { readonly signed: SignedProof }): View {
  const { totals, holes, verifications, allowed, batch_export, project, destination, timezone } = proof;
  return html`<div class="statement">
    <${Facts}
      look="card"
      facts=${[
        ['Export', `${batch_export.name} of ${project.name}`],
        ['Month', `${proof.month}, times in ${timezone}`],
        ['Bucket', `${destination.bucket}/${destination.prefix}`],
        ['Issued', formatMoment(proof.issued_at, timezone)],
        ['Intervals exported', formatCount(totals.exported)],
        ['Rows in the source', formatCount(totals.source_rows)],
        ['Rows in the files', formatCount(totals.file_rows)],
        ['Rejected rows', formatCount(totals.rejected_rows)],
        ['Files', `${formatCount(totals.files)}, ${formatBytes(totals.bytes)}`],
        ['Intervals that differ', formatCount(totals.unequal)],
        ['Intervals not exported', formatCount(totals.holes)],
        ['Verified by people', formatQuantity(verifications.length, 'interval')],
      ]}
    />
    <${Section} title="Who allowed which rows to go">
      <${Table}
        caption="Allowed losses"
        columns=${allowedColumns(timezone)}
        rows=${allowed}
        rowKey=${(one: Allowance) => `${one.start} ${one.at}`}
        empty=${html`<p>Nobody had to.</p>`}
      />
    <//>
    <${Section} title="Not exported">
      <${Table}
        caption="Not exported"
        columns=${holeColumns(timezone)}
        rows=${holes}
        rowKey=${(one: Hole) => one.start}
        empty=${html`<p>${proof.entries.length > 0 ? 'Every interval of the month is exported.' : 'The export has no interval in this month.'}</p>`}
      />
    <//>
    <${Section} title="Intervals">
      <${Table}
        caption="Intervals"
        columns=${entryColumns(timezone)}
        rows=${proof.entries}
        rowKey=${(one: ProofEntry) => one.start}
        empty=${html`<p>The export has no interval in this month. <a href="?month=${monthOf(0)}">Show ${monthOf(0)}</a></p>`}
      />
    <//>
    <${Section} title="Signature">
      <p>
        Ed25519, of the JSON of this statement, with the key <code>${signature.key_id}</code>.${' '}
        <code>exportd proof verify</code> checks the file without a server.
      </p>
      <${CopyBlock} label="public key" text=${signature.public_key} />
    <//>
  </div>`;
}

type Allowance = SignedProof['proof']['allowed'][number];
type Hole = SignedProof['proof']['holes'][number];

const allowedColumns = (zone: string): readonly Column<Allowance>[] => [
  { header: 'Interval', render: ({ start, end }) => formatInterval(start, end, zone) },
  { header: 'When', render: ({ at }) => formatMoment(at, zone) },
  { header: 'By', render: ({ by }) => by ?? 'unknown' },
  {
    header: 'What',
    render: ({ kind, reason }) =>
      kind === 'fewer_rows' ? 'allowed fewer rows' : `acknowledged a difference: ${reason ?? ''}`,
  },
  { header: 'Rows before', align: 'right', render: (one) => formatCount(one.rows_before) },
  { header: 'Rows after', align: 'right', render: (one) => formatCount(one.rows_after) },
];

const holeColumns = (zone: string): readonly Column<Hole>[] => [
  { header: 'Interval', render: ({ start, end }) => formatInterval(start, end, zone) },
  { header: 'State', render: ({ reason }) => reason.replaceAll('_', ' ') },
];
