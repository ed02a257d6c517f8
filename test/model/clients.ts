import { randomUUID } from 'node:crypto';
import type { Pool } from '../../src/journal/database.ts';
import type { Plan, PlannedRequest, RequestName } from './plan.ts';

/** A request and its response. */
export interface RequestResult {
  readonly name: RequestName;
  readonly batch_export_id: string;
  /** The run or the backfill that it was for. */
  readonly target_id: string | undefined;
  readonly key: string;
  readonly status: number;
  readonly location: string | null;
  /** Milliseconds since 1970. The database runs on the same machine and clock. */
  readonly sent_at: number;
  readonly received_at: number;
}

/** How clients reach the HTTP API. */
export interface ApiAddress {
  readonly url: string;
  readonly key: string;
  readonly projectId: number;
}

/** Runs the programs of all clients concurrently and returns all results. */
export async function runClients(
  address: ApiAddress,
  pool: Pool,
  plan: Plan,
  exportIds: readonly string[],
): Promise<RequestResult[]> {
  const results = await Promise.all(
    plan.map(async (program) => {
      const results: RequestResult[] = [];
      for (const planned of program) results.push(...(await perform(address, pool, planned, exportIds)));
      return results;
    }),
  );
  return results.flat();
}

const pickFrom = <Item>(items: readonly Item[], pick: number): Item | undefined =>
  items[pick % Math.max(1, items.length)];

async function perform(
  address: ApiAddress,
  pool: Pool,
  planned: PlannedRequest,
  exportIds: readonly string[],
): Promise<RequestResult[]> {
  const id = pickFrom(exportIds, planned.export) ?? '';
  const target_id = await pickTarget(pool, id, planned);
  const [method, path, body] = toHttpRequest(planned, id, target_id);
  const key = randomUUID();
  const send = async (): Promise<RequestResult> => {
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
      target_id,
      key,
      status: response.status,
      location: response.headers.get('location'),
      sent_at,
      received_at: Date.now(),
    };
  };
  return Promise.all(planned.twice ? [send(), send()] : [send()]);
}

/** Picks a run or a backfill of the export if the request needs one; a random id if there is none. */
async function pickTarget(
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

function toHttpRequest(
  { name, pick }: PlannedRequest,
  id: string,
  target_id = '',
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
    case 'changeInterval':
      return ['PATCH', `${id}/`, { interval: `every ${[1, 2, 5][pick % 3] ?? 1} minutes` }];
    case 'backfill': {
      const end = Math.floor(Date.now() / minute - (pick % 20)) * minute;
      const start = end - (1 + (pick % 4)) * minute;
      const range = { start_at: new Date(start).toISOString(), end_at: new Date(end).toISOString() };
      return ['POST', `${id}/backfills/`, range];
    }
    case 'pauseBackfill':
      return ['POST', `${id}/backfills/${target_id}/pause/`];
    case 'unpauseBackfill':
      return ['POST', `${id}/backfills/${target_id}/unpause/`];
    case 'cancelBackfill':
      return ['POST', `${id}/backfills/${target_id}/cancel/`];
    case 'retry':
      return ['POST', `${id}/runs/${target_id}/retry/`];
    case 'cancelRun':
      return ['POST', `${id}/runs/${target_id}/cancel/`];
    case 'delete':
      return ['DELETE', `${id}/`];
  }
}
