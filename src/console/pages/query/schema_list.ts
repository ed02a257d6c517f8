import type { CompletionSource } from '../../editor/completion.ts';
import { html, type View } from '../../html.ts';

/** The tables that queries can read, each with its fields. */
export function SchemaList({ source }: { readonly source: CompletionSource | null }): View {
  return html`<section class="schema-list" aria-busy=${source === null ? 'true' : undefined}>
    <h2>Tables</h2>
    ${source?.vocabulary.tables.map(
      ({ name, fields }) =>
        html`<details key=${name}>
          <summary><code>${name}</code></summary>
          <ul>
            ${fields.map(
              (field) =>
                html`<li key=${field.name}>
                  <code>${field.name}</code> <span class="muted">${field.type}</span>
                </li>`,
            )}
          </ul>
        </details>`,
    )}
  </section>`;
}
