import type * as z from 'zod';
import type { destinationTestSchema } from '../../http/batch_exports/schema.ts';
import { api, may } from '../api/client.ts';
import { useRequest } from '../api/resource.ts';
import { html, type View } from '../html.ts';
import { inWords } from '../pages/edit/form_fields.ts';
import { Button, CommandLines } from './actions.ts';
import { FailureNotice } from './page.ts';
import { StatusBadge } from './statuses.ts';

/** The steps of a destination test and their results. */
export type DestinationTestResult = z.infer<typeof destinationTestSchema>;

/** A button that tests the destination of an export, the result of each step, and the lines that do the same. */
export function DestinationTest({ exportId }: { readonly exportId: string }): View {
  const path = `batch_exports/${exportId}/test/`;
  const { data, failure, isBusy, run } = useRequest(() => api.post<DestinationTestResult>(path, {}));
  if (!may('batch_export:write')) return null;
  const command = ['destination', 'test', exportId];
  return html`<div class="destination-test">
    <div class="page-actions">
      <${Button} busy=${isBusy} onClick=${() => void run()}>${isBusy ? 'Testing…' : 'Test destination'}<//>
      <span class="muted">Writes and deletes a small object below the prefix.</span>
    </div>
    <div aria-live="polite">
      ${failure && html`<${FailureNotice} failure=${failure} onRetry=${run} />`}
      ${data && html`<${DestinationTestSteps} steps=${data.steps} />`}
    </div>
    <${CommandLines} request=${{ method: 'POST', path, body: {}, command }} />
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
            ${message !== null && html`<p class=${status === 'Failed' ? 'tone-danger' : 'muted'}>${inWords(message)}</p>`}
            ${details !== undefined && html`<p class="muted">${details}</p>`}
          </div>
        </li>`,
    )}
  </ol>`;
}
