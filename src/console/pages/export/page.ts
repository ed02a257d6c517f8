import type { BatchExportResponse, WhyResponse } from '../../../http/batch_exports/schema.ts';
import { useResource, type Resource } from '../../api/resource.ts';
import { Loaded, Page, Tabs } from '../../components/page.ts';
import { type Action, ActionButton } from '../../components/actions.ts';
import { Moment } from '../../components/moment.ts';
import { ConditionBadge } from '../../components/statuses.ts';
import { html, type View } from '../../html.ts';
import { currentQuery } from '../../router/location.ts';
import { paths, type PageProps } from '../../router/paths.ts';
import { Backfills } from './backfills.ts';
import { ExportActions } from './export_actions.ts';
import { Log, Runs } from './runs.ts';
import { Overview } from './overview.ts';
import { Reading } from './reading.ts';
import { Settings } from './settings.ts';
import { Webhooks } from './webhooks.ts';

const parts = [
  { id: 'overview', label: 'Overview', View: Overview },
  { id: 'runs', label: 'Runs', View: Runs },
  { id: 'backfills', label: 'Backfills', View: Backfills },
  { id: 'log', label: 'Log', View: Log },
  { id: 'read', label: 'Read', View: Reading },
  { id: 'settings', label: 'Settings', View: Settings },
  { id: 'webhooks', label: 'Webhooks', View: Webhooks },
] as const;

/** An export: its intervals, runs, backfills, log, how to read its files, settings and webhooks, and every action on it. */
export default function ExportPage({ params }: PageProps): View {
  const id = params.id ?? '';
  const resource = useResource<BatchExportResponse>(`batch_exports/${id}/`, { live: id });
  return html`<${Loaded} resource=${resource}>
    ${(found: BatchExportResponse) => html`<${FoundExport} found=${found} resource=${resource} />`}
  <//>`;
}

function FoundExport({
  found,
  resource,
}: {
  readonly found: BatchExportResponse;
  readonly resource: Resource<BatchExportResponse>;
}): View {
  const current = parts.find(({ id }) => id === currentQuery.value.get('tab')) ?? parts[0];
  return html`<${Page}
    title=${found.name}
    parents=${[{ title: 'Exports', path: paths.exports }]}
    subtitle=${html`<span class="export-subtitle">
      <${ConditionBadge} cause=${found.condition.cause} />
      <span>${found.model}, ${cadenceOf(found)}</span>
      <code>${locationOf(found)}</code>
    </span>`}
    actions=${html`<${ExportActions} found=${found} reload=${resource.reload} />`}
  >
    <${ConditionNotice} found=${found} reload=${resource.reload} />
    <${Tabs}
      label="Parts of the export"
      tabs=${parts}
      current=${current.id}
      pathOf=${(id: string) => (id === 'overview' ? paths.export(found.id) : `${paths.export(found.id)}?tab=${id}`)}
    />
    <${current.View} found=${found} reload=${resource.reload} />
  <//>`;
}

/** What is wrong with an export and who has to act, and the buttons that cure it. Nothing while all is well. */
function ConditionNotice({
  found: {
    id,
    condition: { severity, summary, since, actions },
  },
  reload,
}: {
  readonly found: BatchExportResponse;
  readonly reload: () => unknown;
}): View {
  if (severity === 'ok') return null;
  return html`<${WrongCondition}
    key=${summary}
    id=${id}
    condition=${{ severity, summary, since, actions }}
    reload=${reload}
  />`;
}

function WrongCondition({
  id,
  condition: { severity, summary, since, actions },
  reload,
}: {
  readonly id: string;
  readonly condition: Pick<BatchExportResponse['condition'], 'severity' | 'summary' | 'since' | 'actions'>;
  readonly reload: () => unknown;
}): View {
  const why = useResource<WhyResponse>(`batch_exports/${id}/why/`, { live: id });
  return html`<div class="notice ${severity === 'error' ? 'notice-danger' : ''}" role="status">
    <p>${why.data?.summary ?? summary}</p>
    ${since !== null && html`<p class="muted">Since <${Moment} at=${since} exact /></p>`}
    ${
      actions.length > 0 &&
      html`<div class="page-actions">
        ${actions.map((action) => html`<${ActionButton} key=${action.command} action=${toAction(action, reload)} />`)}
      </div>`
    }
  </div>`;
}

type ConditionAction = BatchExportResponse['condition']['actions'][number];

const toAction = (
  { label, method, path, body, command }: ConditionAction,
  onDone: () => unknown,
): Action => ({
  label,
  method,
  path,
  body,
  // Without the name of the program, and no word has a space.
  command: command.split(' ').slice(1),
  done: 'Requested.',
  onDone,
  ...('allow_shrink' in body && {
    kind: 'danger',
    confirm: {
      title: 'Publish what the source has now?',
      text: 'Rows that the bucket has and the source no longer has are deleted from the bucket.',
    },
  }),
});

/** `every hour`, `every 5 minutes`. */
const cadenceOf = ({ interval, timezone }: BatchExportResponse): string =>
  `${everyOf(interval)}${timezone === 'UTC' ? '' : `, ${timezone}`}`;

const everyOf = (interval: string): string => {
  if (interval === 'every 1 minutes') return 'every minute';
  return interval.startsWith('every') ? interval : `every ${interval}`;
};

/** Where the files go: `s3://bucket/prefix`. */
const locationOf = ({ destination: { type, config } }: BatchExportResponse): string => {
  const { bucket_name, prefix } = config;
  return `${type.toLowerCase()}://${text(bucket_name)}/${text(prefix)}`;
};

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
