import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { CheckedQueryResponse } from '../../../http/console/pages/schema.ts';
import { api, projectId } from '../../api/client.ts';
import { useRequest } from '../../api/resource.ts';
import { Button } from '../../components/actions.ts';
import { TextField } from '../../components/field.ts';
import { FailureNotice } from '../../components/page.ts';
import type { useCompletionSource } from '../../editor/completion.ts';
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

const maxRecent = 20;

/** The texts of queries that this browser has run in the project, the newest first. */
export function useRecentQueries() {
  const key = `exportd-queries-${projectId.value}`;
  const queries = useSignal<readonly string[]>(useMemo(() => readQueries(key), [key]));
  const store = (changed: readonly string[]) => {
    queries.value = changed.slice(0, maxRecent);
    window.localStorage.setItem(key, JSON.stringify(queries.value));
  };
  const without = (query: string) => queries.peek().filter((one) => one !== query);
  return {
    queries: queries.value,
    add: (query: string) => store([query, ...without(query)]),
    remove: (query: string) => store(without(query)),
  };
}

function readQueries(key: string): readonly string[] {
  try {
    const stored: unknown = JSON.parse(window.localStorage.getItem(key) ?? '[]');
    return Array.isArray(stored) ? stored.filter((query) => typeof query === 'string') : [];
  } catch {
    return [];
  }
}

/** The queries of this browser, each a button that shows it again. */
export function RecentQueries({
  recent: { queries, remove },
  onChoose,
}: {
  readonly recent: ReturnType<typeof useRecentQueries>;
  readonly onChoose: (query: string) => void;
}): View {
  if (queries.length === 0) return null;
  return html`<section class="schema-list">
    <h2>Run in this browser</h2>
    <ul class="recent-queries">
      ${queries.map(
        (query) =>
          html`<li key=${query}>
            <button type="button" class="recent-query" title=${query} onClick=${() => onChoose(query)}>
              <code>${query.replaceAll(/\s+/g, ' ')}</code>
            </button>
            <${Button} kind="quiet" label="Remove ${query}" onClick=${() => remove(query)}>×<//>
          </li>`,
      )}
    </ul>
  </section>`;
}

/** Asks for a query in words, which the server drafts as SQL. */
export function DescribedQuery({
  query,
  onDraft,
}: {
  readonly query: string;
  readonly onDraft: (sql: string) => void;
}): View {
  const prompt = useSignal('');
  const { isBusy, failure, run } = useRequest(async () => {
    const parameters = { prompt: prompt.value, current_query: query };
    onDraft((await api.get<{ readonly sql: string }>('query/draft_sql/', parameters)).sql);
  });
  return html`<form
    class="described-query"
    onSubmit=${(event: SubmitEvent) => {
      event.preventDefault();
      void run();
    }}
  >
    <${TextField}
      label="Describe it in words"
      placeholder="signups per week by country in the last 3 months"
      value=${prompt.value}
      onInput=${(text: string) => (prompt.value = text)}
      error=${failure?.message}
    />
    <${Button} type="submit" busy=${isBusy} disabled=${prompt.value.trim() === ''}>Draft SQL<//>
  </form>`;
}

/** The tables that queries can read, each with its fields. */
export function SchemaList({
  vocabulary: { source, failure, reload },
}: {
  readonly vocabulary: ReturnType<typeof useCompletionSource>;
}): View {
  return html`<section class="schema-list" aria-busy=${source === null && !failure ? 'true' : undefined}>
    <h2>Tables</h2>
    ${failure && html`<${FailureNotice} failure=${failure} onRetry=${reload} />`}
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
