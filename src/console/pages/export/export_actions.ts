import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import type { CoverageResponse, FirstRowResponse } from '../../../http/console/pages/schema.ts';
import { may, timezone } from '../../api/client.ts';
import type { Resource } from '../../api/resource.ts';
import { type Action, ActionButton, Button } from '../../components/actions.ts';
import { formatInterval } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { navigate } from '../../router/location.ts';
import { paths } from '../../router/paths.ts';
import type { TimeRange } from './coverage.ts';

/** What can be done with an export: export its newest interval now, edit, pause or unpause, delete. */
export function ExportActions({ found, coverage: { data: coverage }, reload }: PartProps): View {
  const { id, name } = found;
  const unpause = (backfill: boolean): Action => ({
    label: backfill ? 'Unpause and backfill' : 'Unpause',
    // After failures the notice has the button that cures them; this one alone would let them fail again.
    kind: backfill || found.condition.cause !== 'paused' ? 'plain' : 'primary',
    method: 'POST',
    path: `batch_exports/${id}/unpause/`,
    body: backfill ? { backfill: true } : {},
    command: ['export', 'unpause', id, ...(backfill ? ['--backfill'] : [])],
    done: backfill ? 'Unpaused. A backfill exports what was missed.' : 'Unpaused.',
    onDone: reload,
  });
  const pause: Action = {
    label: 'Pause',
    method: 'POST',
    path: `batch_exports/${id}/pause/`,
    body: {},
    command: ['export', 'pause', id],
    done: 'Paused. Active runs end as usual.',
    onDone: reload,
  };
  const remove: Action = {
    label: 'Delete',
    kind: 'danger',
    method: 'DELETE',
    path: `batch_exports/${id}/`,
    command: ['export', 'delete', id],
    confirm: {
      title: `Delete ${name}?`,
      text: 'Its runs are cancelled and its history is no longer shown. The files stay in the bucket.',
    },
    done: `${name} was deleted.`,
    onDone: () => navigate(paths.exports),
  };
  return html`
    ${coverage && html`<${ActionButton} action=${runNowAction(id, coverage, reload)} />`}
    ${may('batch_export:write') && html`<${Button} href=${paths.editExport(id)}>Edit<//>`}
    <${ActionButton} action=${found.paused ? unpause(false) : pause} />
    ${found.paused && html`<${ActionButton} action=${unpause(true)} />`}
    <${ActionButton} action=${remove} />
  `;
}

/** Exports the interval that has just ended, again if it is exported. */
function runNowAction(
  id: string,
  { newest_interval: { start, end } }: CoverageResponse,
  onDone: () => unknown,
): Action {
  return {
    label: 'Run now',
    method: 'POST',
    path: `batch_exports/${id}/backfills/`,
    body: { start_at: start, end_at: end },
    command: ['export', 'backfill', id, '--start-at', start, '--end-at', end],
    done: `A run of ${formatInterval(start, end, timezone.value)} was requested.`,
    onDone,
  };
}

/** What a part of the page is given. */
export interface PartProps {
  readonly found: BatchExportResponse;
  readonly coverage: Resource<CoverageResponse>;
  /** When the source inserted its first row, and why it is not known. */
  readonly firstRow: FirstRowResponse;
  readonly reload: () => Promise<void>;
  /** Opens the dialog of a backfill, with a range or without. */
  readonly onBackfill: (range?: TimeRange) => void;
}
