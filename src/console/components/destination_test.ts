import { useSignal } from '@preact/signals';
import type { z } from 'zod';
import type { destinationTestSchema } from '../../http/batch_exports/schema.ts';
import { api, type ApiFailure, may, toFailure } from '../api/client.ts';
import { html, type View } from '../html.ts';
import { Button, CommandLines } from './actions.ts';
import { FailureNotice } from './page.ts';
import { StatusBadge } from './statuses.ts';

/** The steps of a destination test and their results. */
export type DestinationTestResult = z.infer<typeof destinationTestSchema>;

/**
 * A button that tests a destination, and the result of each step. `path` and `body` are those of the test: the body of a
 * new export, or the changes of an existing one.
 */
export function DestinationTest({
  path,
  body,
  command,
  onResult,
}: {
  readonly path: string;
  readonly body?: unknown;
  readonly command?: readonly string[] | undefined;
  readonly onResult?: (result: DestinationTestResult) => void;
}): View {
  const isBusy = useSignal(false);
  const result = useSignal<DestinationTestResult | undefined>(undefined);
  const failure = useSignal<ApiFailure | undefined>(undefined);
  if (!may('batch_export:write')) return null;
  const run = async () => {
    isBusy.value = true;
    failure.value = undefined;
    try {
      const tested = await api.post<DestinationTestResult>(path, body ?? {});
      result.value = tested;
      onResult?.(tested);
    } catch (error) {
      result.value = undefined;
      failure.value = toFailure(error);
    } finally {
      isBusy.value = false;
    }
  };
  return html`<div class="destination-test">
    <div class="page-actions">
      <${Button} busy=${isBusy.value} onClick=${() => void run()}>
        ${isBusy.value ? 'Testing…' : 'Test destination'}
      <//>
      <span class="muted">Writes and deletes a small object below the prefix.</span>
    </div>
    <div aria-live="polite">
      ${failure.value && html`<${FailureNotice} failure=${failure.value} onRetry=${run} />`}
      ${result.value && html`<${DestinationTestSteps} steps=${result.value.steps} />`}
    </div>
    ${command && html`<${CommandLines} request=${{ method: 'POST', path, body: body ?? {}, command }} />`}
  </div>`;
}

/** The result of each step of a destination test, in order. */
export function DestinationTestSteps({ steps }: { readonly steps: DestinationTestResult['steps'] }): View {
  return html`<ol class="test-steps">
    ${steps.map(
      ({ name, description, result: { status, message, details } }) =>
        html`<li key=${name}>
          <${StatusBadge} status=${status} />
          <div>
            <p>${description}</p>
            ${message !== null && html`<p class=${status === 'Failed' ? 'tone-danger' : 'muted'}>${message}</p>`}
            ${details !== undefined && html`<p class="muted">${details}</p>`}
          </div>
        </li>`,
    )}
  </ol>`;
}
