import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import {
  type ActionRequest,
  api,
  type ExportdError,
  projectId,
  timezone,
  toFailure,
} from '../../api/client.ts';
import { Button, CommandLines, Dialog, toast } from '../../components/actions.ts';
import { DestinationTestSteps, type DestinationTestResult } from '../../components/destination_test.ts';
import { FailureNotice } from '../../components/page.ts';
import { useCompletionSource } from '../../editor/completion.ts';
import { withLocalTimes } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { navigate } from '../../router/location.ts';
import { paths } from '../../router/paths.ts';
import { EstimatePanel, FirstRows, PreviewPanel, SourceCheck, usePreview } from './side_panels.ts';
import {
  createBodyOf,
  fieldOfError,
  fields,
  inputsOf,
  publicPartOf,
  textOf,
  updateBodyOf,
  withoutSecrets,
  type FormField,
  type Input,
  type Inputs,
} from './form_fields.ts';
import { FormSections } from './form_sections.ts';

type Busy = 'testing' | 'saving' | null;

/** The form of an export, with what the export would write beside it. */
export function EditForm({ found }: { readonly found: BatchExportResponse | null }): View {
  const form = useRef<HTMLFormElement>(null);
  const { source } = useCompletionSource();
  const before = useMemo(() => inputsOf(found), []);
  const draft = useDraft(found?.id ?? 'new', before);
  const inputs = useSignal<Inputs>(draft.restored ?? before);
  const failure = useSignal<ExportdError | undefined>(undefined);
  const tested = useSignal<{ readonly body: string; readonly result: DestinationTestResult } | null>(null);
  const busy = useSignal<Busy>(null);
  const sourceChecks = useSignal(0);
  const isChecked = useSignal(false);
  const consequences = useSignal<readonly string[]>([]);

  const body = found ? updateBodyOf(inputs.value, before) : createBodyOf(inputs.value);
  const path = found ? `batch_exports/${found.id}/` : 'batch_exports/';
  const preview = usePreview(found?.id ?? null, withoutSecrets(body), sourceChecks.value);
  const testBody = JSON.stringify({ model: body.model, destination: body.destination });
  const test = tested.value?.body === testBody ? tested.value.result : null;
  const hasFailedTest = test?.steps.some(({ result }) => result.status === 'Failed') ?? false;

  const fail = (error: unknown) => {
    failure.value = toFailure(error);
    const field = fieldOfError(failure.value.attr);
    if (field) focusField(form.current, field);
  };
  const missing = fields.filter(
    ({ attr, required }) => required === true && textOf(inputs.value[attr]).trim() === '',
  );
  /** Shows every required field that is empty, not one at a time as the API does. */
  const isComplete = (needed: readonly FormField[]): boolean => {
    isChecked.value = true;
    const [first] = needed;
    if (first) focusField(form.current, first);
    return first === undefined;
  };
  const runTest = async (): Promise<boolean> => {
    if (!isComplete(missing.filter(({ attr }) => attr.startsWith('destination__')))) return false;
    busy.value = 'testing';
    failure.value = undefined;
    try {
      const result = await api.post<DestinationTestResult>(`${path}test/`, JSON.parse(testBody));
      tested.value = { body: testBody, result };
      return result.steps.every((step) => step.result.status !== 'Failed');
    } catch (error) {
      fail(error);
      return false;
    } finally {
      busy.value = null;
    }
  };
  const save = async () => {
    busy.value = 'saving';
    failure.value = undefined;
    try {
      const saved = found
        ? await api.patch<{ id?: string } | null>(path, body)
        : await api.post<{ id: string }>(path, body);
      draft.drop();
      toast(found ? 'Saved.' : 'Created.');
      navigate(paths.export(found?.id ?? saved?.id ?? ''));
    } catch (error) {
      fail(error);
    } finally {
      busy.value = null;
    }
  };
  /** A destination that changes is tested first. A failed test is shown, and saving again skips it. */
  const submit = async () => {
    if (!isComplete(missing)) return;
    const isTested = test !== null || body.destination === undefined;
    if (!isTested && !(await runTest())) return;
    if (found) {
      busy.value = 'saving';
      try {
        const checked = await api.post<{ consequences: string[] }>(`${path}check/`, body);
        consequences.value = checked.consequences;
      } catch (error) {
        fail(error);
        return;
      } finally {
        busy.value = null;
      }
    }
    if (consequences.value.length === 0) await save();
  };

  const empty = isChecked.value
    ? missing.map(({ attr, label }) => [attr, `${label} is required.`] as const)
    : [];
  const errors = { ...errorsOf([failure.value, preview.failure]), ...Object.fromEntries(empty) };
  const verb = found ? 'Save' : 'Create export';
  const hasChanges = found === null || Object.keys(body).length > 0;
  const request: ActionRequest = {
    method: found ? 'PATCH' : 'POST',
    path,
    body: withoutSecrets(body),
    command: [
      ...(found ? ['export', 'update', found.id] : ['export', 'create']),
      JSON.stringify(found ? withoutSecrets(body) : publicPartOf(body)),
    ],
  };
  return html`<form
    class="edit-form"
    ref=${form}
    novalidate
    onSubmit=${(event: SubmitEvent) => {
      event.preventDefault();
      void submit();
    }}
  >
    <div class="edit-fields">
      ${
        draft.restored &&
        inputs.value !== before &&
        html`<div class="notice" role="status">
          <p>What you typed is here again, except secrets.</p>
          <${Button}
            onClick=${() => {
              draft.drop();
              inputs.value = before;
            }}
            >Start over<//
          >
        </div>`
      }
      <${FormSections}
        inputs=${inputs.value}
        errors=${errors}
        source=${source}
        storedSecret=${(field: FormField) => storedSecretOf(found, field)}
        onInput=${(field: FormField, input: Input) => {
          inputs.value = { ...inputs.value, [field.attr]: input };
          draft.keep(inputs.value);
          if (failure.value && fieldOfError(failure.value.attr) === field) failure.value = undefined;
        }}
      />
    </div>
    <div class="edit-beside">
      <aside class="edit-side" aria-label="What the export writes">
        <${SourceCheck} model=${textOf(inputs.value.model)} onCheck=${() => (sourceChecks.value += 1)} />
        <${PreviewPanel} preview=${preview} />
        <${EstimatePanel} id=${found?.id ?? null} body=${withoutSecrets(body)} />
        <section class="card edit-panel">
          <h2>Destination test</h2>
          <div aria-live="polite">
            ${test ? html`<${DestinationTestSteps} steps=${test.steps} />` : html`<p class="muted">Writes and deletes small objects below the prefix.</p>`}
          </div>
          <div>
            <${Button} busy=${busy.value !== null} onClick=${() => void runTest()}>Test destination<//>
          </div>
        </section>
      </aside>
    </div>
    <${FirstRows} preview=${preview} />
    ${
      consequences.value.length > 0 &&
      html`<${ConsequencesDialog}
        consequences=${consequences.value}
        isBusy=${busy.value === 'saving'}
        onSave=${() => {
          void save().then(() => (consequences.value = []));
        }}
        onClose=${() => (consequences.value = [])}
      />`
    }
    <div class="edit-actions">
      ${failure.value && !fieldOfError(failure.value.attr) && html`<${FailureNotice} failure=${failure.value} />`}
      <div class="page-actions">
        <${Button} kind="primary" type="submit" busy=${busy.value !== null} disabled=${!hasChanges}>
          ${hasFailedTest ? `${verb} anyway` : verb}
        <//>
        <${Button} href=${found ? paths.export(found.id) : paths.exports}>Cancel<//>
        <span class="muted" role="status">${statusOf(busy.value, hasFailedTest)}</span>
      </div>
      <details>
        <summary>The same from a terminal</summary>
        <${CommandLines} request=${request} />
      </details>
    </div>
  </form>`;
}

/** What a field of a secret says of the stored one. */
function storedSecretOf(found: BatchExportResponse | null, { attr }: FormField): string | undefined {
  if (found === null) return undefined;
  const { access_key_id_end: end } = found.destination;
  return attr.endsWith('__aws_access_key_id') && end !== null
    ? `Stored; it ends in ${end}. Empty keeps it.`
    : 'Stored and never shown. Empty keeps it.';
}

/** What a person is asked before an update is saved: what else it does. */
function ConsequencesDialog({
  consequences,
  isBusy,
  onSave,
  onClose,
}: {
  readonly consequences: readonly string[];
  readonly isBusy: boolean;
  readonly onSave: () => void;
  readonly onClose: () => void;
}): View {
  return html`<${Dialog}
    title="Save these changes?"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Back<//>
      <${Button} kind="primary" busy=${isBusy} onClick=${onSave}>Save changes<//>`}
  >
    ${consequences.map((sentence) => html`<p key=${sentence}>${withLocalTimes(sentence, timezone.value)}</p>`)}
  <//>`;
}

/** What was typed into a form, in this tab until it is saved. Never secrets. */
interface Draft {
  /** What was typed before the page was left; null if nothing was, or if the export has changed since. */
  readonly restored: Inputs | null;
  readonly keep: (inputs: Inputs) => void;
  readonly drop: () => void;
}

function useDraft(form: string, before: Inputs): Draft {
  const key = `exportd-draft-${projectId.value}-${form}`;
  const base = JSON.stringify(before);
  return {
    restored: useMemo(() => {
      const stored = window.sessionStorage.getItem(key);
      const draft = stored === null ? null : (JSON.parse(stored) as { base: string; inputs: Inputs });
      return draft?.base === base ? draft.inputs : null;
    }, [key]),
    keep: (inputs) => {
      const withoutSecret = Object.fromEntries(
        fields.map(({ attr, control }) => [attr, (control === 'secret' ? before : inputs)[attr] ?? '']),
      );
      window.sessionStorage.setItem(key, JSON.stringify({ base, inputs: withoutSecret }));
    },
    drop: () => window.sessionStorage.removeItem(key),
  };
}

function statusOf(busy: Busy, hasFailedTest: boolean): string {
  if (busy === 'testing') return 'Testing the destination…';
  if (busy === 'saving') return 'Saving…';
  return hasFailedTest ? 'The destination test failed: runs will fail until this is fixed.' : '';
}

/** The errors of fields, by their `attr`. */
const errorsOf = (failures: readonly (ExportdError | undefined)[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    failures.flatMap((failure) => {
      const field = failure && fieldOfError(failure.attr);
      return field ? [[field.attr, failure.message]] : [];
    }),
  );

/** Shows a field, whose section may be closed. */
function focusField(form: HTMLFormElement | null, { attr }: FormField): void {
  const control = form?.querySelector(`[data-attr="${CSS.escape(attr)}"]`);
  if (!(control instanceof HTMLElement)) return;
  const section = control.closest('details');
  if (section) section.open = true;
  control.focus();
}
