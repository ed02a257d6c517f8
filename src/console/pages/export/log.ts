import type { LogLineResponse } from '../../../http/intervals/schema.ts';
import { type ListOf, timezone } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { SelectField, TextField } from '../../components/field.ts';
import { messageInWords } from '../../components/in_words.ts';
import { EmptyState, Loaded, OffsetPages, Section } from '../../components/page.ts';
import { LogLines } from '../../components/runs.ts';
import { formatInterval, formatMoment, formatQuantity } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import type { PartProps } from './export_actions.ts';
import { groupByRun, type LogGroup } from './log_groups.ts';
import { runPath } from './runs.ts';

const logPageSize = 100;

const levels = [
  { value: '', label: 'All' },
  { value: 'WARNING,ERROR', label: 'Warnings and errors' },
  { value: 'ERROR', label: 'Errors' },
];

/** The log of an export, newest first: a run is one line, which opens. */
export function Log({ found }: PartProps): View {
  const level = currentQuery.value.get('level') ?? '';
  const search = currentQuery.value.get('search') ?? '';
  const offset = Number(currentQuery.value.get('offset') ?? 0);
  const lines = useResource<ListOf<LogLineResponse>>(`batch_exports/${found.id}/logs/`, {
    query: { level, search, offset, limit: logPageSize },
    polls: true,
  });
  return html`<${Section} title="Log">
    <div class="filters">
      <${SelectField}
        label="Level"
        value=${level}
        options=${levels}
        onChange=${(value: string) => setQuery({ level: value, offset: null })}
      />
      <${TextField}
        label="Search"
        type="search"
        value=${search}
        onInput=${(value: string) => setQuery({ search: value, offset: null })}
      />
    </div>
    <${Loaded} resource=${lines}>
      ${(page: ListOf<LogLineResponse>) =>
        html`<div class="card">
            <${LogGroups}
              groups=${groupByRun(page.results)}
              exportId=${found.id}
              empty=${level === '' && search === '' ? 'Nothing was logged yet' : 'No line matches'}
            />
          </div>
          <${OffsetPages} page=${page} offset=${offset} size=${logPageSize} />`}
    <//>
  <//>`;
}

function LogGroups({
  groups,
  exportId,
  empty,
}: {
  readonly groups: readonly LogGroup[];
  readonly exportId: string;
  readonly empty: string;
}): View {
  if (groups.length === 0) return html`<${EmptyState} title=${empty} />`;
  return html`<ol class="steps log-lines">
    ${groups.map((group) => html`<${Group} key=${group.key} group=${group} exportId=${exportId} />`)}
  </ol>`;
}

function Group({ group, exportId }: { readonly group: LogGroup; readonly exportId: string }): View {
  const { run_id, interval, lines, headline } = group;
  const at = lines[0]?.timestamp ?? '';
  const sentence = html`<span class="log-level">${headline.level}</span> ${messageInWords(headline.message)}`;
  return html`<li class="step-${headline.level.toLowerCase()}">
    <time class="figures" datetime=${at}>${formatMoment(at, timezone.value)}</time>
    ${
      run_id === null
        ? html`<p>${sentence}</p>`
        : html`<div class="log-run">
            <a class="figures" href=${runPath({ id: run_id, batch_export: exportId })}
              >${interval === null ? 'Run' : `Run of ${formatInterval(interval.start, interval.end, timezone.value)}`}</a
            >
            ${
              lines.length === 1
                ? html`<p>${sentence}</p>`
                : html`<details>
                    <summary>
                      ${sentence} <span class="muted">${formatQuantity(lines.length, 'line')}</span>
                    </summary>
                    <${LogLines} lines=${lines} empty="" />
                  </details>`
            }
          </div>`
    }
  </li>`;
}
