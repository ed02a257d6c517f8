import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { CheckedQueryResponse } from '../../../http/console/schema.ts';
import type { DashboardResponse } from '../../../http/dashboards/schema.ts';
import { api, apiPath, type ListOf, may } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import type { CompletionSource } from '../../editor/completion.ts';
import { html, type View } from '../../html.ts';

type QueryProblem = NonNullable<CheckedQueryResponse['error']>;

/** The pause in typing after which a query is checked. */
const pauseMs = 500;

/** What is wrong with a query, checked on the server after each pause in typing; null while nothing is known. */
export function useQueryCheck(query: string): QueryProblem | null {
  const checked = useSignal<{ readonly query: string; readonly problem: QueryProblem | null }>({
    query: '',
    problem: null,
  });
  useEffect(() => {
    if (query.trim() === '') return undefined;
    const stop = new AbortController();
    const timer = window.setTimeout(() => {
      api
        .post<CheckedQueryResponse>('console/query/check/', { query }, stop.signal)
        .then(({ error }) => {
          checked.value = { query, problem: error };
        })
        // The query itself says what is wrong when it runs.
        .catch(() => undefined);
    }, pauseMs);
    return () => {
      window.clearTimeout(timer);
      stop.abort();
    };
  }, [query]);
  return checked.value.query === query ? checked.value.problem : null;
}

const shownDashboards = 20;

/** Links to the dashboards that the user of the key may see. */
export function SavedDashboards(): View {
  const mayRead = may('dashboard:read');
  const { data } = useResource<ListOf<DashboardResponse>>(mayRead ? 'dashboards/' : null, {
    query: { limit: shownDashboards },
  });
  if (!mayRead || !data) return null;
  return html`<section class="saved-dashboards">
    <h2>Dashboards</h2>
    ${
      data.results.length === 0
        ? html`<p class="muted">
            No dashboard yet. Create one with <code>npx exportd dashboard create</code>.
          </p>`
        : html`<ul>
            ${data.results.map(
              ({ id, name, description }) =>
                html`<li key=${id}>
                  <a href=${apiPath(`dashboards/${id}/`)} target="_blank" rel="noopener">${name}</a>
                  ${description && html`<p class="muted">${description}</p>`}
                </li>`,
            )}
          </ul>`
    }
  </section>`;
}

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
