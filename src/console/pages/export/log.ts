import type { LogLineResponse } from '../../../http/intervals/schema.ts';
import type { ListOf } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { Button } from '../../components/button.ts';
import { SelectField, TextField } from '../../components/field.ts';
import { Loaded } from '../../components/loaded.ts';
import { Section } from '../../components/page.ts';
import { LogLines } from '../../components/run_steps.ts';
import { html, type View } from '../../html.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import type { PartProps } from './part_props.ts';

const pageSize = 100;

const levels = [
  { value: '', label: 'All' },
  { value: 'WARNING,ERROR', label: 'Warnings and errors' },
  { value: 'ERROR', label: 'Errors' },
];

/** The log of an export, newest line first. */
export function Log({ found }: PartProps): View {
  const level = currentQuery.value.get('level') ?? '';
  const search = currentQuery.value.get('search') ?? '';
  const offset = Number(currentQuery.value.get('offset') ?? 0);
  const lines = useResource<ListOf<LogLineResponse>>(`batch_exports/${found.id}/logs/`, {
    query: { level, search, offset, limit: pageSize },
    live: found.id,
  });
  const show = (start: number) => () => setQuery({ offset: start > 0 ? String(start) : null });
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
            <${LogLines}
              lines=${page.results}
              empty=${level === '' && search === '' ? 'Nothing was logged yet' : 'No line matches'}
            />
          </div>
          ${
            (page.previous !== null || page.next !== null) &&
            html`<div class="page-actions">
              <${Button} disabled=${page.previous === null} onClick=${show(offset - pageSize)}>Newer<//>
              <${Button} disabled=${page.next === null} onClick=${show(offset + pageSize)}>Older<//>
            </div>`
          }`}
    <//>
  <//>`;
}
