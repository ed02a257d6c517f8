import { useSignal } from '@preact/signals';
import type { DryRunResponse } from '../../../http/backfills/schema.ts';
import { toFailure, type ApiFailure } from '../../api/api_failure.ts';
import { api } from '../../api/client.ts';
import { CommandLines } from '../../components/action_button.ts';
import { Button } from '../../components/button.ts';
import { Dialog } from '../../components/dialog.ts';
import { TextField } from '../../components/field.ts';
import { toast } from '../../components/toast.ts';
import { formatQuantity } from '../../formatting/count.ts';
import { formatInterval } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';

const dayMs = 86_400_000;
const hourMs = 3_600_000;

/** A time in UTC as the value of a `datetime-local` field. */
const toField = (time: number): string => new Date(time).toISOString().slice(0, 16);
/** The value of a `datetime-local` field, which has no offset, as a time in UTC. */
const fromField = (value: string): string =>
  value === '' ? '' : `${value}${value.length === 16 ? ':00' : ''}Z`;

/** Asks for the range of a backfill, counts its intervals and rows by a dry run, and starts it. */
export function BackfillDialog({
  exportId,
  onClose,
  onStarted,
}: {
  readonly exportId: string;
  readonly onClose: () => void;
  readonly onStarted: () => unknown;
}): View {
  const thisHour = Math.floor(Date.now() / hourMs) * hourMs;
  const start = useSignal(toField(thisHour - dayMs));
  const end = useSignal(toField(thisHour));
  const allowsShrink = useSignal(false);
  const preview = useSignal<DryRunResponse | undefined>(undefined);
  const failure = useSignal<ApiFailure | undefined>(undefined);
  const busy = useSignal<'preview' | 'start' | undefined>(undefined);
  const path = `batch_exports/${exportId}/backfills/`;
  const range = { start_at: fromField(start.value), end_at: fromField(end.value) };
  const body = { ...range, ...(allowsShrink.value ? { allow_shrink: true } : {}) };

  const submit = async (what: 'preview' | 'start') => {
    busy.value = what;
    failure.value = undefined;
    try {
      if (what === 'preview') {
        preview.value = await api.post<DryRunResponse>(path, { ...range, dry_run: true });
      } else {
        await api.post(path, body);
        toast('The backfill has started.');
        await onStarted();
        onClose();
      }
    } catch (error) {
      failure.value = toFailure(error);
    } finally {
      busy.value = undefined;
    }
  };
  const errorOf = (field: string) => (failure.value?.attr === field ? failure.value.message : undefined);
  const change = (field: typeof start) => (value: string) => {
    field.value = value;
    preview.value = undefined;
    failure.value = undefined;
  };
  const isFieldError = ['start_at', 'end_at'].includes(failure.value?.attr ?? '');
  const flags = ['--start-at', range.start_at, '--end-at', range.end_at];
  return html`<${Dialog}
    title="Backfill"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} busy=${busy.value === 'preview'} onClick=${() => void submit('preview')}>Dry run<//>
      <${Button} kind="primary" busy=${busy.value === 'start'} onClick=${() => void submit('start')}
        >Start backfill<//
      >`}
  >
    <p class="muted">
      Exports each whole interval that overlaps the range, also those that were exported before.
    </p>
    <div class="side-by-side">
      <${TextField}
        label="From (UTC)"
        type="datetime-local"
        value=${start.value}
        onInput=${change(start)}
        error=${errorOf('start_at')}
      />
      <${TextField}
        label="To (UTC)"
        type="datetime-local"
        value=${end.value}
        onInput=${change(end)}
        error=${errorOf('end_at')}
      />
    </div>
    <label class="check">
      <input
        type="checkbox"
        checked=${allowsShrink.value}
        onChange=${(event: Event) => {
          allowsShrink.value = (event.currentTarget as HTMLInputElement).checked;
        }}
      />
      <span>Allow fewer rows: delete rows from the bucket that the source no longer has</span>
    </label>
    <div aria-live="polite">
      ${preview.value && html`<${Preview} preview=${preview.value} />`}
      ${failure.value && !isFieldError && html`<p class="tone-danger" role="alert">${failure.value.message}</p>`}
    </div>
    <${CommandLines}
      request=${{
        method: 'POST',
        path,
        body,
        command: [
          'export',
          'backfill',
          exportId,
          ...flags,
          ...(allowsShrink.value ? ['--allow-shrink'] : []),
        ],
      }}
    />
  <//>`;
}

/** What a backfill would export. */
function Preview({ preview }: { readonly preview: DryRunResponse }): View {
  const { intervals, rows, detail, start_at, end_at } = preview;
  return html`<dl class="facts preview">
    <div>
      <dt>Intervals</dt>
      <dd>${formatQuantity(intervals, 'interval')}</dd>
    </div>
    <div>
      <dt>Rows in the source</dt>
      <dd>${rows === null ? 'not counted' : formatQuantity(rows, 'row')}</dd>
    </div>
    <div>
      <dt>Whole intervals (UTC)</dt>
      <dd>${formatInterval(start_at, end_at, 'UTC')}</dd>
    </div>
    ${
      detail !== null &&
      html`<div>
        <dt>Remark</dt>
        <dd>${detail}</dd>
      </div>`
    }
  </dl>`;
}
