import '../../components/shared.ts';
import { useSignal } from '@preact/signals';
import type { BatchExportResponse, WhyResponse } from '../../../http/batch_exports/schema.ts';
import type {
  CoverageResponse,
  FirstRowResponse,
  SameTroubleResponse,
} from '../../../http/console/pages/schema.ts';
import { may, useTimezone } from '../../api/client.ts';
import { useResource, type Resource } from '../../api/resource.ts';
import { messageInWords } from '../../components/in_words.ts';
import { LoadedPage, Page, Tabs } from '../../components/page.ts';
import { type Action, ActionButton, Button, Dialog } from '../../components/actions.ts';
import { DestinationTest } from '../../components/destination_test.ts';
import { Moment } from '../../components/moment.ts';
import { ConditionBadge } from '../../components/statuses.ts';
import { namesMoment } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { currentQuery } from '../../router/location.ts';
import { paths, type PageProps } from '../../router/paths.ts';
import { BackfillDialog, Backfills } from './backfills.ts';
import type { TimeRange } from './coverage.ts';
import { ExportActions, type PartProps } from './export_actions.ts';
import { Log } from './log.ts';
import { Runs } from './runs.ts';
import { Overview } from './overview.ts';
import { Reading } from './reading.ts';
import { Settings } from './settings.ts';
import { Table } from './table.ts';
import { Webhooks } from './webhooks.ts';

const parts = [
  { id: 'overview', label: 'Overview', View: Overview },
  { id: 'runs', label: 'Runs', View: Runs },
  { id: 'backfills', label: 'Backfills', View: Backfills },
  { id: 'log', label: 'Log', View: Log },
  { id: 'read', label: 'Read', View: Reading },
  { id: 'table', label: 'Table', View: Table },
  { id: 'settings', label: 'Settings', View: Settings },
  { id: 'webhooks', label: 'Webhooks', View: WebhooksOfExport },
] as const;

function WebhooksOfExport({ found }: PartProps): View {
  return html`<${Webhooks} exportId=${found.id} />`;
}

/** An export: its intervals, runs, backfills, log, how to read its files, settings and webhooks, and every action on it. */
export default function ExportPage({ params }: PageProps): View {
  const id = params.id ?? '';
  const resource = useResource<BatchExportResponse>(`batch_exports/${id}/`, { polls: true });
  return html`<${LoadedPage} resource=${resource} what="export">
    ${(found: BatchExportResponse) => html`<${FoundExport} found=${found} resource=${resource} />`}
  <//>`;
}

/** Until the source has responded. */
const unknownFirstRow: FirstRowResponse = { at: null, before: null, rows_before: null, detail: null };

/** What was read of the source, for the sentence about what is exported. Nothing while it is not known. */
const queryOf = ({ at, before, rows_before, detail }: FirstRowResponse = unknownFirstRow) =>
  detail === null ? { before, first_row_at: at, rows_before } : {};

function FoundExport({
  found,
  resource,
}: {
  readonly found: BatchExportResponse;
  readonly resource: Resource<BatchExportResponse>;
}): View {
  const { id } = found;
  useTimezone(found.timezone);
  const shown = parts.filter((part) => part.id !== 'table' || hasTable(found));
  const current = shown.find((part) => part.id === currentQuery.value.get('tab')) ?? parts[0];
  const firstRow = useResource<FirstRowResponse>(`console/batch_exports/${id}/first_row/`);
  const coverage = useResource<CoverageResponse>(`console/batch_exports/${id}/coverage/`, {
    query: queryOf(firstRow.data),
    polls: true,
    keepsData: true,
  });
  // Both dialogs stay when a reading takes away what opened them.
  const backfilled = useSignal<{ readonly range: TimeRange | undefined } | undefined>(undefined);
  const isTesting = useSignal(false);
  const reload = async () => {
    await Promise.all([resource.reload(), coverage.reload()]);
  };
  const { next_run_at = null, temporal_ui = null } = coverage.data ?? {};
  return html`<${Page}
    title=${found.name}
    parents=${[{ title: 'Exports', path: paths.exports }]}
    subtitle=${html`<span class="export-subtitle">
      <${ConditionBadge} cause=${found.condition.cause} isExplained />
      <span>${found.model}, ${cadenceOf(found)}</span>
      ${next_run_at !== null && html`<span>Next run <${Moment} at=${next_run_at} /></span>`}
      <code>${locationOf(found)}</code>
      ${temporal_ui !== null && html`<a href=${temporal_ui} target="_blank" rel="noreferrer">Workflows in Temporal</a>`}
    </span>`}
    actions=${html`<${ExportActions} found=${found} coverage=${coverage} reload=${reload} />`}
  >
    ${found.condition.severity !== 'ok' && html`<${ConditionNotice} found=${found} reload=${reload} onTest=${() => (isTesting.value = true)} />`}
    <${Tabs}
      label="Parts of the export"
      tabs=${shown}
      current=${current.id}
      pathOf=${(tab: string) => (tab === 'overview' ? paths.export(id) : `${paths.export(id)}?tab=${tab}`)}
    />
    <${current.View}
      found=${found}
      coverage=${coverage}
      firstRow=${firstRow.data ?? unknownFirstRow}
      reload=${reload}
      onBackfill=${(range?: TimeRange) => (backfilled.value = { range })}
    />
    ${
      backfilled.value &&
      // Not while it is read for the first time. Later reads leave what was filled in.
      (coverage.data ?? coverage.failure) &&
      html`<${BackfillDialog}
        found=${found}
        coverage=${coverage.data}
        firstRow=${firstRow.data?.at ?? null}
        range=${backfilled.value.range}
        onClose=${() => (backfilled.value = undefined)}
        onStarted=${reload}
      />`
    }
    ${
      isTesting.value &&
      html`<${Dialog} title="Test destination" onClose=${() => (isTesting.value = false)}
        ><${DestinationTest} exportId=${id}
      /><//>`
    }
  <//>`;
}

/** Causes that an owner removes by changing settings of the destination, and that other exports of the bucket may share. */
const destinationCauses: ReadonlySet<string> = new Set([
  'destination_unavailable',
  'paused_by_failures',
  'access_denied',
  'failed',
]);

/** What is wrong with an export and who has to act, and the buttons that cure it. */
function ConditionNotice({
  found: { id, condition },
  reload,
  onTest,
}: {
  readonly found: BatchExportResponse;
  readonly reload: () => unknown;
  readonly onTest: () => void;
}): View {
  const { cause, severity, summary, since, actions } = condition;
  const why = useResource<WhyResponse>(`batch_exports/${id}/why/`, { polls: true });
  const text = why.data?.condition.summary === summary ? why.data.summary : summary;
  const isOfDestination = destinationCauses.has(cause);
  const cure = cureOf(condition);
  // One button instead of one for each step.
  const shown =
    cause === 'paused_by_failures' && cure
      ? [{ ...cure, label: labelOfUnpause(condition), kind: 'primary', onDone: reload }]
      : actions.filter(isRequest).map((action) => toAction(action, reload));
  const decisions = actions.filter(({ method }) => method === 'GET');
  return html`<div class="notice ${severity === 'error' ? 'notice-danger' : ''}" role="status">
    <p>${messageInWords(text)}</p>
    ${since !== null && !namesMoment(text, since) && html`<p class="muted">Since <${Moment} at=${since} exact /></p>`}
    <div class="page-actions">
      ${
        isOfDestination &&
        may('batch_export:write') &&
        html`<${Button} href=${paths.editExport(id)}>Edit<//>
          <${Button} onClick=${onTest}>Test destination<//>`
      }
      ${decisions.map(({ label, path }) => html`<${Button} key=${label} href=${paths.difference(id, startIn(path))}>${label}<//>`)}
      ${shown.map((action) => html`<${ActionButton} key=${action.path + JSON.stringify(action.body)} action=${action} />`)}
    </div>
    ${isOfDestination && (why.data?.others ?? 0) > 0 && html`<${SameTrouble} id=${id} cure=${cure} reload=${reload} />`}
  </div>`;
}

/** The other exports of the bucket that have the same trouble, and one button that fixes them and this one. */
function SameTrouble({
  id,
  cure,
  reload,
}: {
  readonly id: string;
  readonly cure: Action | undefined;
  readonly reload: () => unknown;
}): View {
  const others = useResource<SameTroubleResponse>(`console/batch_exports/${id}/same_trouble/`, {
    polls: true,
  });
  const exports = others.data?.exports ?? [];
  if (exports.length === 0) return null;
  const cures = exports.flatMap(({ condition }) => {
    const found = cureOf(condition);
    return found ? [found, ...(found.more ?? [])] : [];
  });
  return html`<div class="same-trouble">
    <p>
      The same trouble, with the same bucket:
      ${' '}${exports.map(({ id: other, name }, index) => html`${index > 0 && ', '}<a key=${other} href=${paths.export(other)}>${name}</a>`)}
    </p>
    ${
      cure &&
      cures.length > 0 &&
      html`<${ActionButton}
        action=${{
          ...cure,
          label: `Retry all ${exports.length + 1}`,
          more: [...(cure.more ?? []), ...cures],
          done: 'Requested.',
          onDone: reload,
        }}
      />`
    }
  </div>`;
}

type Condition = BatchExportResponse['condition'];

/** The actions of a condition as one. Not what a person has to decide. */
function cureOf({ actions }: Condition): Action | undefined {
  const [first, ...more] = actions.filter(isRequest).map((action) => toAction(action, () => undefined));
  return first && { ...first, more };
}

const labelOfUnpause = ({ affected: { intervals } }: Condition): string =>
  intervals === 0 ? 'Unpause and backfill' : `Unpause, backfill and retry ${intervals}`;

type ConditionAction = Condition['actions'][number] & { readonly method: 'POST' };

/** Whether an action changes something by itself. */
const isRequest = (action: Condition['actions'][number]): action is ConditionAction =>
  action.method === 'POST';

/** The start of the interval that a path is of. */
const startIn = (path: string): string => /\/intervals\/([^/]+)\//.exec(path)?.[1] ?? '';

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

const hasTable = ({ destination }: BatchExportResponse): boolean =>
  typeof destination.config.table_format === 'string';

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
