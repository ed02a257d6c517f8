import { isDeepStrictEqual } from 'node:util';
import type { Connection, Pool } from './database.ts';

/**
 * How an action ended. `accepted`: it is stored and still pending. `failed`: it ended with an error of the server, and may
 * have changed something.
 */
export const auditOutcomes = ['done', 'accepted', 'failed'] as const;

/** A field that was changed. */
export interface FieldChange {
  /** Its path, joined by dots. */
  readonly field: string;
  /** Null where the field had no value, and of a secret. */
  readonly before: unknown;
  readonly after: unknown;
  /** Whether it is a secret, whose values are never stored. */
  readonly secret: boolean;
}

/** The fields of `after` that have another value than before. */
export function fieldChanges(before: object, after: object): FieldChange[] {
  const former = new Map<string, unknown>(Object.entries(before));
  return Object.entries(after)
    .map(([field, value]: [string, unknown]) => ({
      field,
      before: former.get(field) ?? null,
      after: value ?? null,
      secret: false,
    }))
    .filter((change) => !isDeepStrictEqual(change.before, change.after));
}

/** A secret that was set to another value, or removed. */
export const secretChange = (field: string): FieldChange => ({
  field,
  before: null,
  after: null,
  secret: true,
});

/** Who did what. */
export interface NewAuditEvent {
  /** The project of the caller; null for commands that belong to none. */
  readonly team_id: number | null;
  readonly user_id: number | null;
  readonly key_id: string | null;
  /** The IP address; null for the command line. */
  readonly address: string | null;
  /** The user agent, or the user and host of a command. */
  readonly client: string | null;
  /** Resource and verb, such as `batch_export.update`. */
  readonly action: string;
  /** The path of the object below its project, such as `batch_exports/<id>`. */
  readonly object: string | null;
  readonly outcome: (typeof auditOutcomes)[number];
  /** The HTTP status; null for commands. */
  readonly status: number | null;
  /** The code of the error. */
  readonly detail: string | null;
  /** The fields of the object that were set to another value. */
  readonly changes: FieldChange[];
}

/** An event of the trail as read, with the names of what it is about. */
export interface AuditEvent extends Omit<NewAuditEvent, 'user_id' | 'key_id' | 'team_id'> {
  readonly id: string;
  readonly at: string;
  readonly project: { readonly id: number; readonly name: string } | null;
  /** What the export, key, user or project is called now that the object is or is part of; null of others. */
  readonly object_name: string | null;
  readonly user: { readonly id: number; readonly email: string } | null;
  readonly key: { readonly id: string; readonly name: string; readonly prefix: string } | null;
}

const maxLength = 300;

/** Text of others without control characters, and short. */
const safe = (text: string | null): string | null =>
  text === null ? null : text.replaceAll(/[\p{Cc}\p{Cf}]/gu, ' ').slice(0, maxLength);

/** Appends an event to the trail. */
export async function recordAuditEvent(database: Pool | Connection, event: NewAuditEvent): Promise<void> {
  await database.query(
    `insert into exportd.audit_events
       (team_id, user_id, key_id, address, client, action, object, outcome, status, detail, changes)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      event.team_id,
      event.user_id,
      event.key_id,
      event.address,
      safe(event.client),
      event.action,
      safe(event.object),
      event.outcome,
      event.status,
      event.detail,
      event.changes.length === 0 ? null : JSON.stringify(event.changes),
    ],
  );
}

/** Which events of the trail are read. */
interface AuditFilter {
  /** Undefined: of all projects, and of none. */
  readonly team_id?: number | undefined;
  readonly user?: number | undefined;
  readonly key?: string | undefined;
  readonly actions?: readonly string[] | undefined;
  readonly excluded_actions?: readonly string[] | undefined;
  /** The path of an object, whose parts are included. */
  readonly object?: string | undefined;
  readonly outcomes?: readonly string[] | undefined;
  /** ISO 8601. */
  readonly since?: string | undefined;
  /** ISO 8601, exclusive. */
  readonly until?: string | undefined;
}

const conditions = `($1::integer is null or event.team_id = $1) and ($2::integer is null or event.user_id = $2)
  and ($3::uuid is null or event.key_id = $3) and ($4::text[] is null or event.action = any($4))
  and ($5::text is null or event.object = $5 or starts_with(event.object, $5 || '/'))
  and ($6::text[] is null or event.outcome = any($6)) and ($7::timestamptz is null or event.recorded_at >= $7)
  and ($8::timestamptz is null or event.recorded_at < $8)
  and ($9::text[] is null or event.action <> all($9))`;

const valuesOf = (filter: AuditFilter): unknown[] => {
  const { team_id, user, key, actions, object, outcomes, since, until, excluded_actions } = filter;
  return [team_id, user, key, actions, object, outcomes, since, until, excluded_actions].map(
    (value) => value ?? null,
  );
};

/** SQL: the id in a path such as `keys/<id>`; null where the path has another form. */
const idIn = (resource: string, pattern: string): string =>
  `substring(event.object from '^${resource}/(${pattern})(?:/|$)')`;
const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const integer = '[1-9][0-9]{0,8}';

// A request that failed may have named what the project does not have.
const objectName = `case split_part(event.object, '/', 1)
  when 'batch_exports' then (select export.name from exportd.batch_exports export
    where export.id = ${idIn('batch_exports', uuid)}::uuid and export.team_id = event.team_id)
  when 'keys' then (select coalesce(nullif(named.name, ''), named.prefix) from exportd.api_keys named
    where named.id = ${idIn('keys', uuid)}::uuid
      and (event.outcome <> 'failed' or event.team_id = any(named.project_ids)))
  when 'users' then (select named.email from exportd.users named where named.id = ${idIn('users', integer)}::integer)
  when 'projects' then (select named.name from exportd.projects named
    where named.id = ${idIn('projects', integer)}::integer)
  end`;

const selection = `select event.id::text, event.recorded_at as at, event.address, event.client, event.action,
    event.object, ${objectName} as object_name, event.outcome, event.status, event.detail,
    coalesce(event.changes, '[]') as changes,
    case when project.id is not null then json_build_object('id', project.id, 'name', project.name) end as project,
    case when users.id is not null then json_build_object('id', users.id, 'email', users.email) end as user,
    case when key.id is not null
      then json_build_object('id', key.id, 'name', key.name, 'prefix', key.prefix) end as key
  from exportd.audit_events event
  left join exportd.projects project on project.id = event.team_id
  left join exportd.users on users.id = event.user_id
  left join exportd.api_keys key on key.id = event.key_id
  where ${conditions}`;

/** Reads a page of the trail, newest first. */
export async function readAuditEvents(
  pool: Pool,
  filter: AuditFilter,
  window: { readonly limit: number; readonly offset: number },
): Promise<{ count: number; results: AuditEvent[] }> {
  const values = valuesOf(filter);
  const counted = await pool.query<{ count: number }>(
    `select count(*) as count from exportd.audit_events event where ${conditions}`,
    values,
  );
  const { rows } = await pool.query<AuditEvent>(`${selection} order by event.id desc limit $10 offset $11`, [
    ...values,
    window.limit,
    window.offset,
  ]);
  return { count: counted.rows[0]?.count ?? 0, results: rows };
}

/** How many events are read at once of a trail that is read as a whole. */
const streamedEvents = 500;

/** Reads the trail page by page, newest first, each page as it is needed. What is recorded meanwhile is not in it. */
export async function* streamAuditEvents(
  pool: Pool,
  filter: AuditFilter,
  limit = Infinity,
): AsyncGenerator<readonly AuditEvent[], void, undefined> {
  let before: string | null = null;
  for (let left = limit; left > 0; left -= streamedEvents) {
    const size = Math.min(left, streamedEvents);
    const { rows }: { rows: AuditEvent[] } = await pool.query<AuditEvent>(
      `${selection} and ($10::bigint is null or event.id < $10) order by event.id desc limit $11`,
      [...valuesOf(filter), before, size],
    );
    yield rows;
    if (rows.length < size) return;
    before = rows.at(-1)?.id ?? null;
  }
}

/** `name: "Clicks" → "Signups"` of each field; without a former value only the new one. Secrets are named alone. */
export const formatChanges = (changes: readonly FieldChange[]): string =>
  changes
    .map(({ field, before, after, secret }) => {
      if (secret) return `${field} (secret)`;
      return `${field}: ${before === null ? '' : `${JSON.stringify(before)} → `}${JSON.stringify(after)}`;
    })
    .join(', ');

/** Who has changed fields of an object, and which. */
interface ChangedFields {
  readonly at: string;
  /** E-mail address. */
  readonly by: string;
  /** The name of the API key; null if it has none. */
  readonly key: string | null;
  readonly fields: string[];
}

/** How many changes of an object are read. */
const maxChanges = 100;

/** Reads the newest changes of the fields of an object, without its creation, newest first. */
export async function readChangedFields(
  pool: Pool,
  { object, action }: { readonly object: string; readonly action: string },
): Promise<readonly ChangedFields[]> {
  const { rows } = await pool.query<ChangedFields>(
    `select event.recorded_at as at, users.email as by, nullif(key.name, '') as key,
       array(select change ->> 'field' from jsonb_array_elements(event.changes) change) as fields
     from exportd.audit_events event
     join exportd.users on users.id = event.user_id
     left join exportd.api_keys key on key.id = event.key_id
     where event.object = $1 and event.action = $2 and event.outcome <> 'failed' and event.changes is not null
     order by event.id desc limit ${maxChanges}`,
    [object, action],
  );
  return rows;
}

/** Who and what the events of a project name, to choose from. */
export interface AuditNames {
  readonly users: readonly NonNullable<AuditEvent['user']>[];
  readonly keys: readonly NonNullable<AuditEvent['key']>[];
  readonly actions: readonly string[];
}

/** Names are read of so many of the newest events: all of them may be millions. */
const namedEvents = 10_000;

/** The users, keys and actions that the newest events of a project name, and all keys of the project with their owners. */
export async function readAuditNames(pool: Pool, teamId: number): Promise<AuditNames> {
  const { rows } = await pool.query<AuditNames>(
    `with event as (
       select user_id, key_id, action from exportd.audit_events where team_id = $1 order by id desc limit $2),
     key as (
       select id, name, prefix, user_id from exportd.api_keys
       where $1 = any(project_ids) or id in (select key_id from event))
     select
       (select coalesce(json_agg(json_build_object('id', users.id, 'email', users.email) order by users.email), '[]')
        from exportd.users
        where users.id in (select user_id from event union all select user_id from key)) as users,
       (select coalesce(json_agg(json_build_object('id', id, 'name', name, 'prefix', prefix) order by name, id), '[]')
        from key) as keys,
       array(select distinct action from event order by action) as actions`,
    [teamId, namedEvents],
  );
  return rows[0] ?? { users: [], keys: [], actions: [] };
}

const batchSize = 10_000;

/** Deletes events that are older than `retentionMs`, at least a day. @returns how many it deleted */
export async function deleteExpiredAuditEvents(pool: Pool, retentionMs: number): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from exportd.audit_events where id in (
       select id from exportd.audit_events where recorded_at < clock_timestamp() - $1 * interval '1 millisecond'
       order by id limit $2)`,
    [retentionMs, batchSize],
  );
  const deleted = rowCount ?? 0;
  return deleted < batchSize ? deleted : deleted + (await deleteExpiredAuditEvents(pool, retentionMs));
}

/** Deletes sessions of the console that are expired or idle, and those of keys that are no longer valid. */
export async function deleteEndedSessions(pool: Pool, idleMs: number): Promise<void> {
  await pool.query(
    `delete from exportd.console_sessions session using exportd.api_keys key
     where key.id = session.key_id and (session.expires_at < clock_timestamp()
       or session.last_seen_at < clock_timestamp() - $1 * interval '1 millisecond'
       or key.revoked_at is not null or key.expires_at < clock_timestamp())`,
    [idleMs],
  );
}
