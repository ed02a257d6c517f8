import { useSignal } from '@preact/signals';
import type { IntervalDetailResponse } from '../../../http/intervals/detail_schema.ts';
import type { DifferenceResponse } from '../../../http/intervals/difference_schema.ts';
import { type ActionRequest, type ExportdError, may, send, timezone, toFailure } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { Button, CommandLines, Dialog, toast } from '../../components/actions.ts';
import { TextField } from '../../components/field.ts';
import { messageInWords } from '../../components/in_words.ts';
import { Moment } from '../../components/moment.ts';
import { Loaded } from '../../components/page.ts';
import { formatCount, formatMoment, formatQuantity } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { currentQuery } from '../../router/location.ts';

interface DifferenceProps {
  readonly exportId: string;
  readonly detail: IntervalDetailResponse;
  readonly reload: () => unknown;
}

/** That the files of an interval differ from the source, or what was decided about it, with the dialog that decides. */
export function DifferenceNotice({ exportId, detail, reload }: DifferenceProps): View {
  const isOpen = useSignal(currentQuery.value.has('difference'));
  const { interval, newest_check } = detail;
  const { decision, held, manifest_run_id } = interval;
  const differs = held !== null || newest_check?.is_equal === false;
  // A dialog that is open stays, with what was typed, when a later comparison finds no difference.
  if (!isOpen.value && (manifest_run_id === null || (!differs && decision === null))) return null;
  const close = () => (isOpen.value = false);
  return html`<div class="notice">
    ${
      held
        ? html`<p>
            The source no longer has ${formatCount(held.missing_rows)} of the
            ${' '}${formatQuantity(held.bucket_rows, 'row')} that were exported. Nothing was published, and
            the files stay until you decide.
          </p>`
        : differs && html`<p>${newest_check?.summary}.</p>`
    }
    ${decision && html`<${Decision} decision=${decision} />`}
    ${
      may('batch_export:write') &&
      decision?.decision !== 'remove' &&
      html`<div class="page-actions">
        <${Button} onClick=${() => (isOpen.value = true)}>Keep or remove rows…<//>
      </div>`
    }
    ${isOpen.value && html`<${DifferenceDialog} exportId=${exportId} detail=${detail} reload=${reload} onClose=${close} />`}
  </div>`;
}

type StoredDecision = NonNullable<DifferenceResponse['decision']>;

/** `40 rows that the source lacks are kept, by ada@example.com 2 hours ago: they were test data.` */
function Decision({
  decision: { decision, rows, by, at, reason },
}: {
  readonly decision: StoredDecision;
}): View {
  return html`<p class="muted">
    ${formatQuantity(rows, 'row')} that the source lacks: ${decision === 'keep' ? 'kept' : 'removed'} by
    ${' '}${by ?? 'a deleted user'} <${Moment} at=${at} />. ${reason}
  </p>`;
}

/** Shows the rows that the files of an interval have and the source lacks, and keeps them or removes them. */
function DifferenceDialog({
  exportId,
  detail: { interval },
  reload,
  onClose,
}: DifferenceProps & { readonly onClose: () => void }): View {
  const start = interval.data_interval_start;
  const path = `batch_exports/${exportId}/intervals/${encodeURIComponent(start)}/difference/`;
  const difference = useResource<DifferenceResponse>(path);
  const reason = useSignal('');
  const typed = useSignal('');
  const isBusy = useSignal(false);
  const failure = useSignal<ExportdError | undefined>(undefined);

  const requestOf = (decision: StoredDecision['decision'], rows: number): ActionRequest => ({
    method: 'POST',
    path,
    // No others than are shown.
    body: { decision, reason: reason.value, rows },
    command: [
      'export',
      'difference',
      exportId,
      start,
      ...(decision === 'keep' ? ['--keep'] : ['--remove', String(rows)]),
      '--reason',
      reason.value,
    ],
  });
  const decide = async (decision: StoredDecision['decision'], rows: number) => {
    isBusy.value = true;
    failure.value = undefined;
    try {
      const request = requestOf(decision, rows);
      await send(request.method, request.path, { body: request.body });
      toast(
        decision === 'keep' ? 'The rows are kept.' : 'The interval is exported again without these rows.',
      );
      await reload();
      onClose();
    } catch (error) {
      failure.value = toFailure(error);
      typed.value = '';
      await difference.reload();
    } finally {
      isBusy.value = false;
    }
  };
  return html`<${Dialog}
    title="Keep or remove rows"
    staysOpen=${true}
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>`}
  >
    <${Loaded} resource=${difference}>
      ${(found: DifferenceResponse) => {
        const { missing_rows: rows } = found;
        const hasReason = reason.value.trim() !== '';
        const quantity = formatQuantity(rows, 'row');
        return html`<div class="difference-decision">
          <${MissingRows} found=${found} />
          <${TextField}
            label="Reason"
            required=${true}
            value=${reason.value}
            onInput=${(value: string) => (reason.value = value)}
            hint="Shown with the interval and in the audit"
          />
          <div class="difference-choice">
            <p>The files stay as they are. Later comparisons report other rows only.</p>
            <${Button}
              kind="primary"
              disabled=${!hasReason}
              busy=${isBusy.value}
              onClick=${() => void decide('keep', rows)}
              >Keep the exported rows<//
            >
          </div>
          ${
            rows > 0 &&
            html`<div class="difference-choice">
              <${TextField}
                label="To remove them, type ${String(rows)}"
                value=${typed.value}
                onInput=${(value: string) => (typed.value = value)}
                hint="The interval is exported again without these rows. They cannot be restored from the source."
              />
              <${Button}
                kind="danger"
                disabled=${!hasReason || typed.value.trim() !== String(rows)}
                busy=${isBusy.value}
                onClick=${() => void decide('remove', rows)}
                >Remove ${quantity} from the bucket<//
              >
            </div>`
          }
          <div aria-live="polite">
            ${failure.value && html`<p class="tone-danger" role="alert">${messageInWords(failure.value.message)}</p>`}
          </div>
          ${hasReason && html`<${CommandLines} request=${requestOf('keep', rows)} />`}
        </div>`;
      }}
    <//>
  <//>`;
}

/** Which rows the source lacks: how many, when it had received them, and the first ids. */
function MissingRows({
  found: { missing_rows, is_exact, rows, last_inserted_at },
}: {
  readonly found: DifferenceResponse;
}): View {
  const [first] = rows;
  if (missing_rows === 0)
    return html`<p>
      ${is_exact ? 'The source has all rows of the files now.' : 'The rows cannot be compared one by one.'}
    </p>`;
  const quantity = formatQuantity(missing_rows, 'row');
  return html`<div>
    <p>
      The files have ${is_exact ? '' : 'at least '}${quantity} that the source
      lacks${
        first && last_inserted_at !== null
          ? `, received from ${formatMoment(first.inserted_at, timezone.value)} to ${formatMoment(last_inserted_at, timezone.value)}`
          : ''
      }.
    </p>
    ${
      rows.length > 0 &&
      html`<pre class="difference-rows" tabindex="0" aria-label="Ids of the rows">
${rows.map(({ id, inserted_at }) => `${inserted_at}  ${id}`).join('\n')}</pre>`
    }
    ${rows.length < missing_rows && rows.length > 0 && html`<p class="muted">The first ${rows.length}.</p>`}
  </div>`;
}
