import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { CertifiedErasure, ErasureResponse } from '../../../http/erasures/schema.ts';
import { api, type ListOf, may, project, toFailure } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { type Action, ActionButton, Button, saveFile, toast } from '../../components/actions.ts';
import { type ControlProps, Field } from '../../components/field.ts';
import { Moment } from '../../components/moment.ts';
import { EmptyState, LacksScope, Loaded, OffsetPages, Page, Section } from '../../components/page.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { type Column, Table } from '../../components/table.ts';
import { formatCount, formatQuantity } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { currentQuery } from '../../router/location.ts';

const pageSize = 50;
/** How often a running erasure is read. */
const pollMs = 2_000;

/** The erasures of the project: their progress and certificates, and a form for the next one. */
export default function ErasuresPage(): View {
  return may('erasure:read')
    ? html`<${Erasures} />`
    : html`<${LacksScope} title="Erasures" scope="erasure:read" />`;
}

function Erasures(): View {
  const offset = Number(currentQuery.value.get('offset') ?? 0);
  const erasures = useResource<ListOf<ErasureResponse>>('erasures/', {
    query: { limit: pageSize, offset },
    keepsData: true,
  });
  const isRunning = erasures.data?.results.some(({ status }) => status === 'Running') ?? false;
  const { reload } = erasures;
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = window.setInterval(() => void reload(), pollMs);
    return () => window.clearInterval(timer);
  }, [isRunning, reload]);
  return html`<${Page}
    title="Erasures"
    subtitle="Take the rows of persons out of everything that the project has exported, and certify it."
  >
    ${may('erasure:write') && html`<${Form} onDone=${reload} />`}
    <${Loaded} resource=${erasures}>
      ${(page: ListOf<ErasureResponse>) =>
        html`<${Table}
            caption="Erasures"
            columns=${columns}
            rows=${page.results}
            rowKey=${({ id }: ErasureResponse) => id}
            empty=${html`<${EmptyState} title="Nobody has been erased yet" />`}
          />
          <${OffsetPages} page=${page} offset=${offset} size=${pageSize} />`}
    <//>
  <//>`;
}

function Form({ onDone }: { readonly onDone: () => Promise<void> }): View {
  const text = useSignal('');
  // An id may begin or end with a space.
  const distinct_ids = [...new Set(text.value.split('\n').filter((id) => id !== ''))];
  const persons = formatQuantity(distinct_ids.length, 'distinct id');
  const action: Action = {
    label: 'Erase',
    kind: 'danger',
    scope: 'erasure:write',
    method: 'POST',
    path: 'erasures/',
    body: { distinct_ids },
    command: ['erase', ...distinct_ids.flatMap((id) => ['--distinct-id', id])],
    disabled: distinct_ids.length === 0,
    confirm: {
      title: `Erase ${persons}?`,
      text: html`<p>
        Their rows leave all files of the project ${project.value?.name ?? ''}, and are not exported again.
        Older files are deleted. It cannot be undone.
      </p>`,
    },
    done: 'The erasure has started.',
    onDone: async () => {
      text.value = '';
      await onDone();
    },
  };
  return html`<${Section} title="Erase persons">
    <${Field} label="Distinct ids" hint="One a line, at most 100, exactly as files have them.">
      ${(control: ControlProps) =>
        html`<textarea
          ...${control}
          class="input"
          rows="3"
          spellcheck="false"
          value=${text.value}
          onInput=${(event: Event) => (text.value = (event.currentTarget as HTMLTextAreaElement).value)}
        />`}
    <//>
    <${ActionButton} action=${action} />
  <//>`;
}

/** Stores the certificate of an erasure as a file. */
async function download(id: string): Promise<void> {
  try {
    const { certificate } = await api.get<CertifiedErasure>(`erasures/${id}/`);
    saveFile(`erasure-${id}.json`, 'application/json', JSON.stringify({ certificate }));
  } catch (error) {
    toast(toFailure(error).message, 'danger');
  }
}

const columns: readonly Column<ErasureResponse>[] = [
  { header: 'Requested', render: ({ created_at }) => html`<${Moment} at=${created_at} />` },
  { header: 'By', render: ({ requested_by }) => requested_by ?? '–' },
  { header: 'Status', render: ({ status }) => html`<${StatusBadge} status=${status} />` },
  { header: 'Distinct ids', align: 'right', render: ({ id_hashes }) => formatCount(id_hashes.length) },
  {
    header: 'Searched',
    render: ({ progress }) =>
      `${progress.exports_searched} of ${formatQuantity(progress.exports, 'export')}, ${formatQuantity(progress.intervals_searched, 'interval')}`,
  },
  {
    header: 'Rewritten',
    render: ({ progress }) =>
      `${formatCount(progress.intervals_rewritten)} of ${formatQuantity(progress.intervals_found, 'interval')}`,
  },
  {
    header: 'Rows erased',
    align: 'right',
    render: ({ progress }) => formatCount(progress.rows_erased),
  },
  {
    header: 'Objects removed',
    align: 'right',
    render: ({ progress }) => formatCount(progress.objects_removed),
  },
  {
    header: 'Not erased',
    render: ({ failed, held }) => {
      const reasons = [...failed.map(({ error }) => error), ...held.map(({ reason }) => reason)];
      return reasons.length === 0
        ? '–'
        : html`<details>
            <summary>${formatQuantity(reasons.length, 'reason')}</summary>
            <ul>
              ${[...new Set(reasons)].map((reason) => html`<li key=${reason}>${reason}</li>`)}
            </ul>
          </details>`;
    },
  },
  {
    header: 'Certificate',
    render: ({ id, status }) =>
      status === 'Running'
        ? '–'
        : html`<${Button} label="Download the certificate of ${id}" onClick=${() => void download(id)}
            >Download<//
          >`,
  },
];
