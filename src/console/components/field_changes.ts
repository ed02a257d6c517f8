import type { FieldChange } from '../../http/console/schema.ts';
import { formatValue } from '../formatting/format.ts';
import { html, type View } from '../html.ts';

/** Fields that differ, each with its value before and after. Secrets are named, never shown. */
export function FieldChanges({ changes }: { readonly changes: readonly FieldChange[] }): View {
  if (changes.length === 0) return null;
  return html`<dl class="field-changes">
    ${changes.map(
      ({ field, before, after, secret }) =>
        html`<div key=${field}>
          <dt><code>${field}</code></dt>
          <dd>
            ${
              secret
                ? html`<span class="muted">set (secret)</span>`
                : html`${before !== null && html`<del><span class="visually-hidden">before: </span>${formatValue(before)}</del>`}
                  ${after !== null && html`<ins><span class="visually-hidden">after: </span>${formatValue(after)}</ins>`}
                  ${after === null && html`<span class="muted">removed</span>`}`
            }
          </dd>
        </div>`,
    )}
  </dl>`;
}
