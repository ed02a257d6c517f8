import type { FieldChange } from '../../journal/audit.ts';
import { timezone } from '../api/client.ts';
import { withCodesLast, withLocalTimes } from '../formatting/format.ts';
import { html, type View } from '../html.ts';
import { inWords, labelOf, valueInWords } from '../pages/edit/form_fields.ts';

/** A message of the API in the words of the form and the times of the page, with codes of errors at its end. */
export const messageInWords = (message: string): string =>
  withLocalTimes(inWords(withCodesLast(message)), timezone.value);

/** Fields that differ, each with its value before and after. Secrets are named, never shown. */
export function FieldChanges({ changes }: { readonly changes: readonly FieldChange[] }): View {
  if (changes.length === 0) return null;
  return html`<dl class="field-changes">
    ${changes.map(
      ({ field, before, after, secret }) =>
        html`<div key=${field}>
          <dt title=${field}>${labelOf(field)}</dt>
          <dd>
            ${
              secret
                ? html`<span class="muted">set (secret)</span>`
                : html`${before !== null && html`<del><span class="visually-hidden">before: </span>${valueInWords(field, before)}</del>`}
                  ${after !== null && html`<ins><span class="visually-hidden">after: </span>${valueInWords(field, after)}</ins>`}
                  ${after === null && html`<span class="muted">removed</span>`}`
            }
          </dd>
        </div>`,
    )}
  </dl>`;
}
