import type { RunStatus } from '../../domain/run_state.ts';
import type { Pool } from '../../journal/database.ts';
import { invalid } from '../api_error.ts';
import type { RunsQuery } from '../schemas/run.ts';
import { pageOf } from './page_of.ts';
import { runColumns, type RunRow } from './runs.ts';

/** Where a page starts: after this row in the list's order, or before it when `backwards`. */
interface RunCursor {
  readonly position: number;
  readonly start: string;
  readonly backwards: boolean;
}

/** A page of runs. */
export interface RunPage {
  readonly count: number;
  readonly rows: readonly RunRow[];
  /** Cursors of the adjacent pages, or null. */
  readonly next: string | null;
  readonly previous: string | null;
}

const encodeCursor = (run: RunRow, backwards: boolean): string =>
  Buffer.from(JSON.stringify([run.position, run.data_interval_start, backwards])).toString('base64url');

function decodeCursor(text: string): RunCursor {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    if (Array.isArray(parsed)) {
      const [position, start, backwards] = parsed as unknown[];
      if (
        Number.isSafeInteger(position) &&
        typeof start === 'string' &&
        !Number.isNaN(Date.parse(start)) &&
        typeof backwards === 'boolean'
      )
        return { position: Number(position), start: new Date(start).toISOString(), backwards };
    }
  } catch {
    // Not a cursor of this API; rejected below.
  }
  throw invalid(
    'Invalid cursor. Follow the `next` and `previous` URLs of a page instead of building one.',
    'cursor',
  );
}

/** Reads a page of an export's runs with keyset pagination, so that new runs do not shift later pages. */
export async function readRunPage(
  pool: Pool,
  batchExportId: string,
  query: Omit<RunsQuery, 'status' | 'cursor'> & {
    readonly statuses: readonly RunStatus[] | undefined;
    readonly cursor: string | undefined;
  },
): Promise<RunPage> {
  const cursor = query.cursor === undefined ? undefined : decodeCursor(query.cursor);
  const backwards = cursor?.backwards ?? false;
  const descending = query.ordering.startsWith('-') !== backwards;
  // `created_at` sorts by the position of the RunCreated event in the journal, which has no ties.
  const keys = query.ordering.endsWith('created_at') ? ['position'] : ['data_interval_start', 'position'];
  const conditions = ['batch_export_id = $1'];
  const values: unknown[] = [batchExportId];
  const where = (condition: (parameter: string) => string, value: unknown) => {
    values.push(value);
    conditions.push(condition(`$${values.length}`));
  };
  if (query.statuses) where((parameter) => `status = any(${parameter})`, query.statuses);
  // Responses have milliseconds: a run whose `created_at` reads the same is neither after nor before it.
  if (query.after)
    where((parameter) => `created_at >= ${parameter}::timestamptz + interval '1 millisecond'`, query.after);
  if (query.before) where((parameter) => `created_at < ${parameter}`, query.before);
  if (query.start) where((parameter) => `data_interval_start >= ${parameter}`, query.start);
  if (query.end) where((parameter) => `data_interval_end <= ${parameter}`, query.end);
  const counted = await pool.query<{ count: number }>(
    `select count(*) as count from exportd.batch_export_runs where ${conditions.join(' and ')}`,
    values,
  );
  if (cursor) {
    const comparison = descending ? '<' : '>';
    const parameters = keys.map((key) => {
      values.push(key === 'position' ? cursor.position : cursor.start);
      return key === 'position' ? `$${values.length}::bigint` : `$${values.length}::timestamptz`;
    });
    conditions.push(`(${keys.join(', ')}) ${comparison} (${parameters.join(', ')})`);
  }
  values.push(query.limit + 1);
  const direction = descending ? 'desc' : 'asc';
  const { rows } = await pool.query<RunRow>(
    `select ${runColumns} from exportd.batch_export_runs where ${conditions.join(' and ')}
     order by ${keys.map((key) => `${key} ${direction}`).join(', ')} limit $${values.length}`,
    values,
  );
  const { page, next, previous } = pageOf(rows, query.limit, { backwards, continued: cursor !== undefined });
  return {
    count: counted.rows[0]?.count ?? 0,
    rows: page,
    next: next && encodeCursor(next, false),
    previous: previous && encodeCursor(previous, true),
  };
}
