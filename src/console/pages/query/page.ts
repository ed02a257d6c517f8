import '../../components/shared.ts';
import { useSignal } from '@preact/signals';
import { useCallback } from 'preact/hooks';
import { Button } from '../../components/actions.ts';
import { Page } from '../../components/page.ts';
import { useCompletionSource } from '../../editor/completion.ts';
import { DialectEditor } from '../../editor/dialect_editor.ts';
import { errorRangeOf, summaryOfError } from '../../editor/marked_text.ts';
import { html, type View } from '../../html.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import { QueryOutcome } from './query_outcome.ts';
import { DescribedQuery, RecentQueries, SchemaList, useQueryCheck, useRecentQueries } from './query_aids.ts';
import { useQueryRun } from './query_run.ts';

const example = `SELECT event, count() AS events, uniq(distinct_id) AS people
FROM events
WHERE timestamp > now() - INTERVAL 7 DAY
GROUP BY event
ORDER BY events DESC`;

/** Writes and runs queries in the dialect. The address holds the query that was run last, so that it can be shared. */
export default function QueryPage(): View {
  const query = useSignal(currentQuery.peek().get('sql') ?? example);
  const vocabulary = useCompletionSource();
  const recent = useRecentQueries();
  const { state, run, cancel } = useQueryRun();
  const problem = useQueryCheck(query.value);
  const isRunning = state.status === 'running';

  const write = (text: string) => (query.value = text);
  const submit = useCallback(() => {
    if (query.value.trim() === '') return;
    setQuery({ sql: query.value });
    recent.add(query.value);
    void run(query.value);
  }, [run]);
  const failed = state.status === 'failed' && state.query === query.value ? state.failure : null;
  const error = failed ? errorRangeOf(failed.message, query.value) : problem;
  return html`<${Page} title="Query">
    <div class="workbench">
      <div class="workbench-main">
        <${DialectEditor}
          label="Query"
          value=${query.value}
          error=${error}
          source=${vocabulary.source}
          placeholder="SELECT … FROM events"
          onInput=${write}
          onSubmit=${submit}
        />
        <div class="workbench-bar">
          ${
            isRunning
              ? html`<${Button} kind="danger" onClick=${() => void cancel()}>Cancel<//>`
              : html`<${Button} kind="primary" onClick=${submit}>Run<//>`
          }
          <span class="muted"
            ><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it, <kbd>Ctrl</kbd> <kbd>Space</kbd> completes.</span
          >
          ${!failed && problem && html`<p class="field-error" role="status">${summaryOfError(problem.detail)}</p>`}
        </div>
        <${DescribedQuery} query=${query.value} onDraft=${write} />
        <${QueryOutcome} state=${state} query=${query.value} />
      </div>
      <aside class="workbench-side" aria-label="Queries and tables">
        <${RecentQueries} recent=${recent} onChoose=${write} />
        <${SchemaList} vocabulary=${vocabulary} />
      </aside>
    </div>
  <//>`;
}
