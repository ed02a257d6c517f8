import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import { may } from '../../api/client.ts';
import { type Action, ActionButton, Button } from '../../components/actions.ts';
import { html, type View } from '../../html.ts';
import { navigate } from '../../router/location.ts';
import { paths } from '../../router/paths.ts';

/** What can be done with an export: edit, pause or unpause, delete. */
export function ExportActions({ found, reload }: PartProps): View {
  const { id, name } = found;
  const unpause = (backfill: boolean): Action => ({
    label: backfill ? 'Unpause and fill the pause' : 'Unpause',
    kind: backfill ? 'plain' : 'primary',
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
    ${may('batch_export:write') && html`<${Button} href=${paths.editExport(id)}>Edit<//>`}
    ${
      found.paused
        ? html`<${ActionButton} action=${unpause(false)} /><${ActionButton} action=${unpause(true)} />`
        : html`<${ActionButton} action=${pause} />`
    }
    <${ActionButton} action=${remove} />
  `;
}

/** What a part of the page is given. */
export interface PartProps {
  readonly found: BatchExportResponse;
  readonly reload: () => Promise<void>;
}
