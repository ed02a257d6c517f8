import '../../components/shared.ts';
import { useSignal } from '@preact/signals';
import { useCallback, useEffect, useMemo } from 'preact/hooks';
import { api, type ExportdError, type ListOf, toFailure } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { Button } from '../../components/actions.ts';
import { Field, type ControlProps } from '../../components/field.ts';
import { FailureNotice, Page } from '../../components/page.ts';
import { useCompletionSource } from '../../editor/completion.ts';
import { DialectEditor } from '../../editor/dialect_editor.ts';
import { errorRangeOf, summaryOfError } from '../../editor/marked_text.ts';
import { html, type View } from '../../html.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import { InsightBuilder } from './insight_builder.ts';
import { type InsightForm, toForm, toQuery } from './insight_form.ts';
import { DescribedQuery, RecentQueries, SchemaList, useQueryCheck, useRecentQueries } from './query_aids.ts';
import { type DraftView, isSame, parseQuery, useQueryDraft } from './query_draft.ts';
import { Choice, QueryOutcome } from './query_outcome.ts';
import { type AnyQuery, useQueryRun } from './query_run.ts';
import {
  SavedQueries,
  savedQueriesPath,
  type SavedQuery,
  SavedQueryBar,
  savedQueryPath,
} from './saved_queries.ts';

const example = `SELECT event, count() AS events, uniq(distinct_id) AS people
FROM events
WHERE timestamp > now() - INTERVAL 7 DAY
GROUP BY event
ORDER BY events DESC`;

const textOf = ({ query }: AnyQuery): string => (typeof query === 'string' ? query : '');
/** Whether SQL is all of a query. */
const isText = (query: AnyQuery): boolean => query.kind === 'DialectQuery' && Object.keys(query).length === 2;

/** The query in the address: what was run last of a query that is not saved, or differs from it. */
function queryInAddress(): AnyQuery | null {
  const parameters = currentQuery.peek();
  const sql = parameters.get('sql');
  if (sql !== null) return { kind: 'DialectQuery', query: sql };
  const parsed = parseQuery(parameters.get('query') ?? '');
  return typeof parsed === 'string' ? null : parsed;
}

/** Writes, runs and saves queries. The address holds the saved query, or the one that was run last, so that it can be shared. */
export default function QueryPage(): View {
  const draft = useQueryDraft(
    useMemo(() => queryInAddress() ?? { kind: 'DialectQuery', query: example }, []),
  );
  const vocabulary = useCompletionSource();
  const recent = useRecentQueries();
  const saved = useResource<ListOf<SavedQuery>>(savedQueriesPath, { query: { limit: 1_000 } });
  const opened = useSignal<SavedQuery | null>(null);
  const failure = useSignal<ExportdError | null>(null);
  const { state, run, cancel } = useQueryRun();
  const { view, query } = draft;
  const sql = query === null ? '' : textOf(query);
  const problem = useQueryCheck(view === 'sql' ? sql : '');
  const isRunning = state.status === 'running';

  const execute = (next: AnyQuery) => {
    const isSaved = isSame(next, opened.peek()?.query);
    const text = isText(next) ? textOf(next) : null;
    setQuery({ sql: isSaved ? null : text, query: isSaved || text !== null ? null : JSON.stringify(next) });
    if (text !== null) recent.add(text);
    void run(next);
  };
  const submit = useCallback(() => {
    if (query !== null && (query.kind !== 'DialectQuery' || sql.trim() !== '')) execute(query);
  }, [query, run]);
  const open = (one: SavedQuery, isFound = true) => {
    opened.value = one;
    if (!isFound) return;
    draft.open(one.query);
    setQuery({ saved: one.id, sql: null, query: null });
    execute(one.query);
  };

  // A link to a saved query runs it; one that also has another text only shows that.
  const savedId = currentQuery.value.get('saved');
  const hasOther = currentQuery.value.has('sql') || currentQuery.value.has('query');
  useEffect(() => {
    if (savedId === null) {
      opened.value = null;
      return;
    }
    if (opened.peek()?.id === savedId && (hasOther || isSame(query, opened.peek()?.query))) return;
    failure.value = null;
    void api.get<SavedQuery>(savedQueryPath(savedId)).then(
      (found) => {
        if (currentQuery.peek().get('saved') === savedId) open(found, !hasOther);
      },
      (error: unknown) => (failure.value = toFailure(error)),
    );
  }, [savedId, hasOther]);

  const failed = state.status === 'failed' && isSame(query, state.query) ? state.failure : null;
  const error = failed ? errorRangeOf(failed.message, sql) : problem;
  const writeSql = (text: string) => draft.write({ ...(query ?? {}), kind: 'DialectQuery', query: text });
  return html`<${Page} title="Query">
    <div class="workbench">
      <div class="workbench-main">
        ${
          failure.value &&
          (failure.value.status === 404
            ? html`<p class="notice notice-danger" role="alert">
                There is no such saved query. It was deleted, belongs to another project, or its link is
                wrong.
              </p>`
            : html`<${FailureNotice} failure=${failure.value} />`)
        }
        <div class="workbench-head">
          <${Choice}
            label="Write the query as"
            options=${[
              ['sql', 'SQL'],
              ['trends', 'Trends'],
              ['funnel', 'Funnel'],
              ['json', 'JSON'],
            ]}
            value=${view}
            onChoose=${(next: DraftView) => draft.show(next)}
          />
          <${SavedQueryBar}
            query=${query}
            opened=${opened.value}
            isChanged=${!isSame(query, opened.value?.query)}
            onSaved=${(one: SavedQuery) => {
              opened.value = one;
              setQuery({ saved: one.id, sql: null, query: null });
              void saved.reload();
            }}
            onOpen=${open}
            onDeleted=${() => {
              setQuery({ saved: null });
              void saved.reload();
            }}
          />
        </div>
        ${
          view === 'sql'
            ? html`<${DialectEditor}
                label="Query"
                value=${sql}
                error=${error}
                source=${vocabulary.source}
                placeholder="SELECT … FROM events"
                onInput=${writeSql}
                onSubmit=${submit}
              />`
            : view === 'json'
              ? html`<${JsonEditor} draft=${draft} onSubmit=${submit} />`
              : html`<${Builder} draft=${draft} names=${vocabulary.source?.names ?? null} />`
        }
        <div class="workbench-bar">
          ${
            isRunning
              ? html`<${Button} kind="danger" onClick=${() => void cancel()}>Cancel<//>`
              : html`<${Button} kind="primary" disabled=${query === null} onClick=${submit}>Run<//>`
          }
          ${
            (view === 'sql' || view === 'json') &&
            html`<span class="muted"
              ><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs
              it${view === 'sql' && html`, <kbd>Ctrl</kbd> <kbd>Space</kbd> completes`}.</span
            >`
          }
          ${view === 'sql' && !failed && problem && html`<p class="field-error" role="status">${summaryOfError(problem.detail)}</p>`}
        </div>
        ${view === 'sql' && html`<${DescribedQuery} query=${sql} onDraft=${writeSql} />`}
        <${QueryOutcome} state=${state} query=${query} />
      </div>
      <aside class="workbench-side" aria-label="Queries and tables">
        <${SavedQueries} saved=${saved} openedId=${opened.value?.id ?? null} />
        <${RecentQueries}
          recent=${recent}
          onChoose=${(text: string) => draft.open({ kind: 'DialectQuery', query: text })}
        />
        <${SchemaList} vocabulary=${vocabulary} />
      </aside>
    </div>
  <//>`;
}

type Draft = ReturnType<typeof useQueryDraft>;

/** The form of the query, or which field of it no form shows. */
function Builder({
  draft: { query, write, show },
  names,
}: {
  readonly draft: Draft;
  readonly names: Parameters<typeof InsightBuilder>[0]['names'];
}): View {
  const shown = query === null ? { unshown: 'kind' } : toForm(query);
  if ('form' in shown)
    return html`<${InsightBuilder}
      form=${shown.form}
      names=${names}
      onChange=${(form: InsightForm) => write(toQuery(form))}
    />`;
  return html`<div class="notice">
    <p>The form cannot show <code>${shown.unshown}</code> of this query. It runs unchanged.</p>
    <${Button} onClick=${() => show('json')}>Edit its JSON<//>
  </div>`;
}

/** The JSON of the query. */
function JsonEditor({
  draft: { json, problem, writeJson },
  onSubmit,
}: {
  readonly draft: Draft;
  readonly onSubmit: () => void;
}): View {
  return html`<${Field} label="Query as JSON" error=${problem}>
    ${(control: ControlProps) =>
      html`<textarea
        ...${control}
        class="input json-editor"
        rows=${Math.min(30, Math.max(8, json.split('\n').length))}
        spellcheck=${false}
        value=${json}
        onInput=${(event: InputEvent) => writeJson((event.currentTarget as HTMLTextAreaElement).value)}
        onKeyDown=${(event: KeyboardEvent) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          onSubmit();
        }}
      />`}
  <//>`;
}
