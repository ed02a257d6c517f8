/**
 * Jobs: what a person asks and a worker answers later. A row of `exportd.jobs` has the request and its answer, and the workflow
 * of its kind carries the id of the row alone.
 */
import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import type { Subscriber } from '../journal/journal.ts';
import type { StoredRows } from '../journal/stored_rows.ts';
import type { Logger } from '../telemetry/logger.ts';

/** How many unfinished jobs a project may have, of all kinds that share the limit. */
interface JobLimit {
  /** The names of these kinds. */
  readonly kinds: readonly string[];
  readonly max: number;
}

/** A kind of job. The folder of what it does declares it, the API requests it, and workers register its handler. */
export interface JobKind<Parameters extends object, Result extends object> {
  /** Its name in `exportd.jobs`. */
  readonly name: string;
  /** The workflow, which says in the Temporal UI what happens; workflows/jobs.ts has it, or a file of its capability. */
  readonly workflowType: string;
  /** What the Temporal UI says of it. */
  readonly summary: string;
  /** Null if requests are limited before they are stored. */
  readonly limit: JobLimit | null;
  /** Attempts, if a worker is lost. An error is an answer, and no reason for another attempt. */
  readonly attempts: number;
  /** How long an attempt may take, in milliseconds. */
  readonly timeoutMs: (settings: Settings) => number;
  /** Whether it is listed later. Otherwise it is deleted with the request that has waited for it, or an hour after its time. */
  readonly isKept: boolean;
  /** Never set: the types of its parameters and of its result. */
  readonly types?: readonly [Parameters, Result];
}

/** What a request has of a job. */
export interface JobRequest<Parameters extends object> {
  readonly team_id: number;
  readonly user_id: number;
  /** The export or webhook that the job is about. The jobs of an export are deleted with it. */
  readonly target: string;
  /** What else there is to know, without secrets. */
  readonly parameters: Parameters;
  /** Sealed for the target. They are deleted with the answer, or an hour after its time. */
  readonly secrets?: Readonly<Record<string, string>>;
}

/** A stored job. */
export interface Job<Parameters extends object = object, Result extends object = object> extends Required<
  JobRequest<Parameters>
> {
  readonly id: string;
  readonly kind: string;
  readonly status: 'pending' | 'completed' | 'failed';
  readonly result: Result | null;
  /** Why it failed, for users; null too if no worker has finished it in time. */
  readonly error: string | null;
  readonly created_at: string;
  readonly finished_at: string | null;
}

/** The jobs of a kind. */
export type JobOf<Kind> =
  Kind extends JobKind<infer Parameters, infer Result> ? Job<Parameters, Result> : never;

/** How a job ends. */
export type JobOutcome<Result extends object = object> =
  | { readonly result: Result }
  | { readonly error: string };

/** How long a busy worker may take to start, in milliseconds. */
const startDelayMs = 2_000;

/** The milliseconds after which there is no answer to a job any more: Temporal has ended its workflow. */
export const jobTimeoutMs = ({ timeoutMs }: JobTime, settings: Settings): number =>
  timeoutMs(settings) + startDelayMs;

type JobTime = Pick<JobKind<object, object>, 'timeoutMs'>;

/** SQL: jobs that a worker does, or is going to do. One that was withdrawn is among them until its activity has ended. */
const isUnfinished = `finished_at is null and ends_before > clock_timestamp()`;

const columns = `id, kind, team_id, user_id, target, parameters, secrets, result, error, created_at, finished_at,
    case when ${isUnfinished} then 'pending' when result is null then 'failed' else 'completed' end as status`;
const selection = `select ${columns} from exportd.jobs`;

/** SQL: jobs that clients had an hour to read, and whose secrets are not needed. */
const isAbandoned = `not is_kept and ends_before < clock_timestamp() - interval '1 hour'`;

/** Jobs with their answers, which name rows by their ids. */
export const jobRows: StoredRows = {
  tables: [],
  expired: [
    // Some have secrets.
    `delete from exportd.jobs where $1::bigint is not null and id in (
       select id from exportd.jobs where ${isAbandoned} limit $2)`,
    `delete from exportd.jobs where id in (
       select id from exportd.jobs where created_at < clock_timestamp() - $1 * interval '1 millisecond'
       order by created_at limit $2)`,
  ],
};

/** SQL: withdraws jobs. What a worker does not do is deleted at once, the others when their activities have ended. */
const withdraw = (jobs: string): string => `with started as (
    update exportd.jobs set withdrawn = true, secrets = '{}'
    where ${jobs} and started_at is not null and finished_at is null)
  delete from exportd.jobs where ${jobs} and (started_at is null or finished_at is not null)`;

/** Withdraws the jobs of an export that is deleted: they can no longer be read. */
export const withdrawJobsOfExport: Subscriber = async (connection, { stored }) => {
  if (stored.type === 'BatchExportDeleted')
    await connection.query(withdraw('target = $1'), [stored.stream_id]);
  return undefined;
};

/** The newest jobs of one request that are kept, the new one among them. */
const keptRepetitions = 10;

/** Stores a job and returns its id; null while too many of its limit are unfinished. Deletes older ones of the same request. */
export const requestJob = <Parameters extends object, Result extends object>(
  { pool, settings }: { readonly pool: Pool; readonly settings: Settings },
  kind: JobKind<Parameters, Result>,
  { team_id, user_id, target, parameters, secrets = {} }: JobRequest<Parameters>,
): Promise<string | null> =>
  inTransaction(pool, async (connection) => {
    const { name, limit, isKept } = kind;
    // Concurrent requests of a project exceed no limit together.
    if (limit)
      await connection.query(`select pg_advisory_xact_lock(hashtextextended('jobs/' || $1::text, 0))`, [
        team_id,
      ]);
    const { rows } = await connection.query<{ id: string }>(
      `with obsolete as (
         delete from exportd.jobs where ${isAbandoned} or id in (
           select id from exportd.jobs where target = $4 and kind = $1 and parameters = $5
             and not (${isUnfinished})
           order by created_at desc offset ${keptRepetitions - 1}))
       insert into exportd.jobs (kind, team_id, user_id, target, parameters, secrets, is_kept, ends_before)
       select $1, $2::integer, $3, $4, $5, $6, $7, clock_timestamp() + $8::bigint * interval '1 millisecond'
       where $9::bigint is null or $9 > (
         select count(*) from exportd.jobs where team_id = $2 and kind = any($10::text[]) and ${isUnfinished})
       returning id`,
      [
        name,
        team_id,
        user_id,
        target,
        JSON.stringify(parameters),
        JSON.stringify(secrets),
        isKept,
        jobTimeoutMs(kind, settings),
        limit?.max,
        limit?.kinds,
      ],
    );
    return rows[0]?.id ?? null;
  });

/** Reads a job of a kind; undefined if it does not exist, or no longer. */
export async function findJob<Parameters extends object, Result extends object>(
  pool: Pool,
  { name }: JobKind<Parameters, Result>,
  id: string,
): Promise<Job<Parameters, Result> | undefined> {
  const { rows } = await pool.query<Job<Parameters, Result>>(
    `${selection} where id = $1 and kind = $2 and not withdrawn`,
    [id, name],
  );
  return rows[0];
}

/** Reads a job of any kind of a project; undefined if it does not exist, or no longer. */
export async function findJobOfProject(pool: Pool, teamId: number, id: string): Promise<Job | undefined> {
  const { rows } = await pool.query<Job>(`${selection} where id = $1 and team_id = $2 and not withdrawn`, [
    id,
    teamId,
  ]);
  return rows[0];
}

/** The newest jobs of a kind that have these parameters, newest first. */
export async function listJobs<Parameters extends object, Result extends object>(
  pool: Pool,
  { name }: JobKind<Parameters, Result>,
  { target, parameters }: { readonly target: string; readonly parameters: Partial<Parameters> },
): Promise<Job<Parameters, Result>[]> {
  const { rows } = await pool.query<Job<Parameters, Result>>(
    `${selection} where target = $1 and kind = $2 and parameters @> $3 and not withdrawn
     order by created_at desc limit ${keptRepetitions}`,
    [target, name, JSON.stringify(parameters)],
  );
  return rows;
}

/** Stores how a job has ended, and deletes its secrets. */
export async function finishJob(database: Pool | Connection, id: string, outcome: JobOutcome): Promise<void> {
  await database.query(
    `update exportd.jobs set result = $2, error = $3, secrets = '{}', finished_at = clock_timestamp()
     where id = $1 and finished_at is null and not withdrawn`,
    [
      id,
      'result' in outcome ? JSON.stringify(outcome.result) : null,
      'error' in outcome ? outcome.error : null,
    ],
  );
}

/** Withdraws a job that nothing waits for. Its worker ends within seconds, without storing an answer. */
export async function withdrawJob(pool: Pool, id: string): Promise<void> {
  await pool.query(withdraw('id = $1'), [id]);
}

/** Notes that a worker does a job, and reads it; undefined if there is nothing to do any more. */
export async function beginJob(pool: Pool, id: string): Promise<Job | undefined> {
  const { rows } = await pool.query<Job>(
    `update exportd.jobs set started_at = coalesce(started_at, clock_timestamp())
     where id = $1 and finished_at is null and not withdrawn returning ${columns}`,
    [id],
  );
  return rows[0];
}

/** Whether nothing waits for a job any more. */
export async function isWithdrawn(pool: Pool, id: string): Promise<boolean> {
  const { rowCount } = await pool.query('select from exportd.jobs where id = $1 and not withdrawn', [id]);
  return rowCount === 0;
}

/** Deletes a job that was withdrawn, once its activity has ended. */
export async function deleteWithdrawn(pool: Pool, id: string): Promise<void> {
  await pool.query('delete from exportd.jobs where id = $1 and withdrawn', [id]);
}

/** What handlers are made of. */
export interface JobDependencies {
  readonly pool: Pool;
  readonly keyRing: KeyRing;
  readonly settings: Settings;
  readonly logger: Logger;
}

/** Does the jobs of a kind. What it throws is the answer too, as a message for users. */
export interface JobHandler extends JobTime {
  readonly kind: string;
  readonly handle: (job: Job, signal: AbortSignal) => Promise<object>;
}

/** The handler of a kind, which knows the types of its parameters and of its result. */
export const handlerOf = <Parameters extends object, Result extends object>(
  { name, timeoutMs }: JobKind<Parameters, Result>,
  handle: (job: Job<Parameters, Result>, signal: AbortSignal) => Promise<Result>,
): JobHandler => ({
  kind: name,
  timeoutMs,
  // Only `requestJob` stores jobs, with the parameters of their kind.
  handle: (job, signal) => handle(job as Job<Parameters, Result>, signal),
});
