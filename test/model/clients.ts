import { randomUUID } from 'node:crypto';
import type { Pool } from '../../src/journal/database.ts';
import type { Plan, PlannedRequest, RequestName } from './plan.ts';

/** A request that was answered. */
export interface AnsweredRequest {
  readonly name: RequestName;
  readonly batch_export_id: string;
  /** The run or the backfill that it was about. */
  readonly subject: string | undefined;
  readonly key: string;
  readonly status: number;
  readonly location: string | null;
  /** Milliseconds since 1970, on the clock of the machine that the database runs on too. */
  readonly sent_at: number;
  readonly answered_at: number;
}

/** The facade as clients see it. */
export interface Address {
  readonly url: string;
  readonly key: string;
  readonly projectId: number;
}

/** Runs all programs side by side and returns every answer. */
export async function runClients(
  address: Address,
  pool: Pool,
  plan: Plan,
  exportIds: readonly string[],
): Promise<AnsweredRequest[]> {
  const answers = await Promise.all(
    plan.map(async (program) => {
      const own: AnsweredRequest[] = [];
      for (const planned of program) own.push(...(await perform(address, pool, planned, exportIds)));
      return own;
    }),
  );
  return answers.flat();
}

const pickFrom = <Item>(items: readonly Item[], pick: number): Item | undefined =>
  items[pick % Math.max(1, items.length)];

async function perform(
  address: Address,
  pool: Pool,
  planned: PlannedRequest,
  exportIds: readonly string[],
): Promise<AnsweredRequest[]> {
  const id = pickFrom(exportIds, planned.export) ?? '';
  const subject = await subjectOf(pool, id, planned);
  const [method, path, body] = httpOf(planned, id, subject);
  const key = randomUUID();
  const send = async (): Promise<AnsweredRequest> => {
    const sent_at = Date.now();
    const response = await fetch(`${address.url}/api/projects/${address.projectId}/batch_exports/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${address.key}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    await response.arrayBuffer();
    return {
      name: planned.name,
      batch_export_id: id,
      subject,
      key,
      status: response.status,
      location: response.headers.get('location'),
      sent_at,
      answered_at: Date.now(),
    };
  };
  return Promise.all(planned.twice ? [send(), send()] : [send()]);
}

/** A run or a backfill of the export, as far as the request is about one; an id of nothing where there is none. */
async function subjectOf(
  pool: Pool,
  id: string,
  { name, pick }: PlannedRequest,
): Promise<string | undefined> {
  const table =
    name.endsWith('Backfill') && name !== 'unpauseWithBackfill' ? 'backfills' : 'batch_export_runs';
  if (table === 'batch_export_runs' && name !== 'retry' && name !== 'cancelRun') return undefined;
  const active = name === 'cancelRun' ? `and status in ('Starting', 'Running')` : '';
  const { rows } = await pool.query<{ id: string }>(
    `select id from exportd.${table} where batch_export_id = $1 ${active} order by position desc limit 6`,
    [id],
  );
  return pickFrom(rows, pick)?.id ?? randomUUID();
}

const minute = 60_000;

function httpOf(
  { name, pick }: PlannedRequest,
  id: string,
  subject = '',
): readonly [method: string, path: string, body?: object] {
  switch (name) {
    case 'pause':
      return ['POST', `${id}/pause/`];
    case 'unpause':
      return ['POST', `${id}/unpause/`];
    case 'unpauseWithBackfill':
      return ['POST', `${id}/unpause/`, { backfill: true }];
    case 'rename':
      return ['PATCH', `${id}/`, { name: `Name ${pick}` }];
    case 'recut':
      return ['PATCH', `${id}/`, { interval: `every ${[1, 2, 5][pick % 3] ?? 1} minutes` }];
    case 'backfill': {
      const end = Math.floor(Date.now() / minute - (pick % 20)) * minute;
      const start = end - (1 + (pick % 4)) * minute;
      const range = { start_at: new Date(start).toISOString(), end_at: new Date(end).toISOString() };
      return ['POST', `${id}/backfills/`, range];
    }
    case 'pauseBackfill':
      return ['POST', `${id}/backfills/${subject}/pause/`];
    case 'unpauseBackfill':
      return ['POST', `${id}/backfills/${subject}/unpause/`];
    case 'cancelBackfill':
      return ['POST', `${id}/backfills/${subject}/cancel/`];
    case 'retry':
      return ['POST', `${id}/runs/${subject}/retry/`];
    case 'cancelRun':
      return ['POST', `${id}/runs/${subject}/cancel/`];
    case 'delete':
      return ['DELETE', `${id}/`];
  }
}
