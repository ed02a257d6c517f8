import { randomUUID } from 'node:crypto';
import { ClientDisconnected } from '../concurrency/client_disconnected.ts';
import type { JsonValue } from '../domain/event.ts';
import type { Pool } from '../journal/database.ts';
import {
  disconnectedCode,
  QueryCancelled,
  QueryError,
  QueryInterrupted,
  QueryNotStarted,
  QuerySlotsBusy,
  slotsBusyCode,
} from './query_errors.ts';
import type { QueryProgress } from './query_kind.ts';

/** The state of a query. The last three are final. */
type QueryState = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled';

/** A query with a status. */
export interface QueryStatus {
  readonly team_id: number;
  readonly id: string;
  /** The user who sent it. */
  readonly user_id: number;
  readonly execution_id: string;
  readonly cache_key: string;
  readonly query_async: boolean;
  readonly status: QueryState;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly progress: QueryProgress | null;
  /** Seconds since the query started to run; null unless it runs. */
  readonly time_elapsed: number | null;
  readonly result_id: string | null;
  readonly start_time: string;
  readonly pickup_time: string | null;
  readonly end_time: string | null;
  readonly expiration_time: string | null;
}

/** Everything needed to run a query. */
export interface QueryJob {
  readonly team_id: number;
  readonly kind: string;
  readonly query: unknown;
  readonly variables: Readonly<Record<string, JsonValue>>;
  readonly cache_key: string;
}

/** How a query ended. */
export type QueryOutcome =
  | { readonly status: 'completed'; readonly result_id: string }
  | { readonly status: 'failed'; readonly error_code: string; readonly error_message: string }
  | { readonly status: 'cancelled' };

/** The outcome of a query whose run threw `error`. Internal errors are reported without details. */
export function outcomeOfError(error: unknown): Exclude<QueryOutcome, { status: 'completed' }> {
  if (error instanceof QueryCancelled) return { status: 'cancelled' };
  if (error instanceof QueryError)
    return { status: 'failed', error_code: error.code, error_message: error.message };
  if (error instanceof ClientDisconnected)
    return { status: 'failed', error_code: disconnectedCode, error_message: error.message };
  if (error instanceof QuerySlotsBusy)
    return { status: 'failed', error_code: slotsBusyCode, error_message: error.message };
  if (error instanceof QueryInterrupted || error instanceof QueryNotStarted)
    return { status: 'failed', error_code: 'query_interrupted', error_message: error.message };
  return { status: 'failed', error_code: 'error', error_message: 'A server error occurred.' };
}

/** Code and message of a cancelled query, in its status and for waiting requests. */
export const cancelledCode = 'query_cancelled';
export const cancelledMessage = 'The query was cancelled.';

/** A server process that sends no heartbeat for this long has lost its queries. */
const leaseMs = 15_000;

const isLost = '(end_time is null and coalesce(lease_expires_at < clock_timestamp(), false))';
const isInUse = `(end_time is null and not ${isLost})`;
const isUnexpired = '(end_time is null or expiration_time > clock_timestamp())';
const statusColumns = `team_id, id, execution_id, cache_key, user_id, query_async, progress, result_id, start_time,
  pickup_time, expiration_time,
  case when ${isLost} then 'failed' else status end as status,
  case when ${isLost} then 'query_lost' else error_code end as error_code,
  case when ${isLost} then 'The process that ran the query has ended. Try again.' else error_message end
    as error_message,
  case when ${isLost} then lease_expires_at else end_time end as end_time,
  case when end_time is null
    then round(extract(epoch from clock_timestamp() - pickup_time)::numeric, 3)::float8 end as time_elapsed`;

/** Whether the state is final. */
export const hasEnded = ({ status }: Pick<QueryStatus, 'status'>): boolean =>
  status !== 'queued' && status !== 'running';

/** A query with an id, and the user who sends it. */
type OwnedJob = QueryJob & { readonly id: string; readonly user_id: number };

/**
 * Registers a query under its id, unless a running query or an unexpired one of another user has that id.
 * @returns the query that has the id now, and whether it is this one.
 */
export async function registerQuery(
  pool: Pool,
  job: OwnedJob & { readonly query_async: boolean },
): Promise<{ readonly registered: boolean; readonly status: QueryStatus }> {
  const { rows } = await pool.query<QueryStatus>(
    `insert into exportd.queries as existing
       (team_id, id, execution_id, kind, query, variables, cache_key, query_async, status, lease_expires_at, user_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, 'queued',
       case when not $8 then clock_timestamp() + $9 * interval '1 millisecond' end, $10)
     on conflict (team_id, id) do update set
       user_id = excluded.user_id, execution_id = excluded.execution_id, kind = excluded.kind, query = excluded.query,
       variables = excluded.variables, cache_key = excluded.cache_key, query_async = excluded.query_async,
       status = excluded.status, cancel_requested = false, error_code = null, error_message = null,
       progress = null, result_id = null, start_time = clock_timestamp(), pickup_time = null,
       end_time = null, expiration_time = null, lease_expires_at = excluded.lease_expires_at
     where (existing.end_time is not null or existing.lease_expires_at < clock_timestamp())
       and (existing.user_id = excluded.user_id or existing.expiration_time < clock_timestamp()
         or existing.lease_expires_at < clock_timestamp())
     returning ${statusColumns}`,
    [
      job.team_id,
      job.id,
      randomUUID(),
      job.kind,
      JSON.stringify(job.query),
      JSON.stringify(job.variables),
      job.cache_key,
      job.query_async,
      leaseMs,
      job.user_id,
    ],
  );
  const [registered] = rows;
  if (registered) return { registered: true, status: registered };
  const status = await readStatus(pool, job.team_id, job.id);
  return status ? { registered: false, status } : registerQuery(pool, job);
}

/** Deletes a query that could not be started. */
export async function deleteQuery(pool: Pool, executionId: string): Promise<void> {
  await pool.query('delete from exportd.queries where execution_id = $1', [executionId]);
}

/** Records a cached result under a client's id, unless the id is in use. */
export async function recordCacheHit(
  pool: Pool,
  job: OwnedJob & { readonly result_id: string },
): Promise<void> {
  const { registered, status } = await registerQuery(pool, { ...job, query_async: false });
  if (registered)
    await finishQuery(pool, status.execution_id, { status: 'completed', result_id: job.result_id });
}

/** The project of a query that has not ended. */
export async function readTeamOfUnfinished(pool: Pool, executionId: string): Promise<number | undefined> {
  const { rows } = await pool.query<{ team_id: number }>(
    'select team_id from exportd.queries where execution_id = $1 and end_time is null and not cancel_requested',
    [executionId],
  );
  return rows[0]?.team_id;
}

/** The number of background queries of a project that have not ended. */
export async function countUnfinished(pool: Pool, teamId: number): Promise<number> {
  const { rows } = await pool.query<{ unfinished: number }>(
    `select count(*) as unfinished from exportd.queries where team_id = $1 and end_time is null and query_async`,
    [teamId],
  );
  return rows[0]?.unfinished ?? 0;
}

/**
 * Marks a queued query as running; also when a worker takes over from a lost one.
 * @returns undefined if it has ended or was replaced.
 */
export async function claimQuery(pool: Pool, executionId: string): Promise<QueryJob | undefined> {
  const { rows } = await pool.query<QueryJob>(
    `update exportd.queries set status = 'running', pickup_time = coalesce(pickup_time, clock_timestamp())
     where execution_id = $1 and end_time is null and not cancel_requested
     returning team_id, kind, query, variables, cache_key`,
    [executionId],
  );
  return rows[0];
}

/** How long the status of a query can be read after its end, in milliseconds. */
const statusRetentionMs = 20 * 60_000;

/** Records the outcome of a query; only the first one is stored. */
export async function finishQuery(pool: Pool, executionId: string, outcome: QueryOutcome): Promise<void> {
  const failure =
    outcome.status === 'cancelled' ? { error_code: cancelledCode, error_message: cancelledMessage } : outcome;
  await pool.query(
    `update exportd.queries set status = $2, result_id = $3, error_code = $4, error_message = $5,
       end_time = clock_timestamp(), expiration_time = clock_timestamp() + $6 * interval '1 millisecond'
     where execution_id = $1 and end_time is null`,
    [
      executionId,
      outcome.status,
      'result_id' in failure ? failure.result_id : null,
      'error_code' in failure ? failure.error_code : null,
      'error_code' in failure ? failure.error_message : null,
      statusRetentionMs,
    ],
  );
}

/** Requests the cancellation of a query. A queued query ends at once. */
export async function requestCancel(pool: Pool, executionId: string): Promise<void> {
  const { rows } = await pool.query<{ status: QueryState }>(
    `update exportd.queries set cancel_requested = true where execution_id = $1 and end_time is null
     returning status`,
    [executionId],
  );
  if (rows[0]?.status === 'queued') await finishQuery(pool, executionId, { status: 'cancelled' });
}

/**
 * Records the heartbeats and the progress of running queries and renews their leases.
 * @returns the execution ids that must stop.
 */
export async function recordHeartbeats(
  pool: Pool,
  running: readonly { readonly execution_id: string; readonly progress: QueryProgress }[],
): Promise<readonly string[]> {
  const { rows } = await pool.query<{ execution_id: string }>(
    `with renewed as (
       update exportd.queries set progress = reported.progress,
         lease_expires_at = case when lease_expires_at is null then null
           else clock_timestamp() + $3 * interval '1 millisecond' end
       from unnest($1::uuid[], $2::json[]) as reported (execution_id, progress)
       where queries.execution_id = reported.execution_id and end_time is null and not cancel_requested
       returning queries.execution_id)
     select execution_id from unnest($1::uuid[]) as execution_id
     where execution_id not in (select execution_id from renewed)`,
    [
      running.map(({ execution_id }) => execution_id),
      running.map(({ progress }) => JSON.stringify(progress)),
      leaseMs,
    ],
  );
  return rows.map(({ execution_id }) => execution_id);
}

/** The unexpired status of a query; with `userId` only if that user has sent it. */
export async function readStatus(
  pool: Pool,
  teamId: number,
  id: string,
  userId?: number,
): Promise<QueryStatus | undefined> {
  const { rows } = await pool.query<QueryStatus>(
    `select ${statusColumns} from exportd.queries
     where team_id = $1 and id = $2 and ($3::integer is null or user_id = $3) and ${isUnexpired}`,
    [teamId, id, userId ?? null],
  );
  return rows[0];
}

/** The user's newest background query that is computing the output of a cache key. */
export async function findRunningQuery(
  pool: Pool,
  { team_id, user_id }: Pick<QueryStatus, 'team_id' | 'user_id'>,
  cacheKey: string,
): Promise<QueryStatus | undefined> {
  const { rows } = await pool.query<QueryStatus>(
    `select ${statusColumns} from exportd.queries
     where team_id = $1 and user_id = $3 and cache_key = $2 and end_time is null and ${isInUse} and query_async
       and not cancel_requested
     order by start_time desc limit 1`,
    [team_id, cacheKey, user_id],
  );
  return rows[0];
}

/** Background queries that were registered at least `ageMs` ago and have not ended. */
export const listUnfinished = async (
  pool: Pool,
  ageMs: number,
): Promise<Pick<QueryStatus, 'team_id' | 'id' | 'execution_id'>[]> =>
  (
    await pool.query<Pick<QueryStatus, 'team_id' | 'id' | 'execution_id'>>(
      `select team_id, id, execution_id from exportd.queries
       where query_async and end_time is null and start_time < clock_timestamp() - $1 * interval '1 millisecond'
       order by start_time limit 100000`,
      [ageMs],
    )
  ).rows;
