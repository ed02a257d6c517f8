import { createHmac } from 'node:crypto';
import pg from 'pg';
import { deriveKeys } from '../../config/key_ring.ts';
import { type Settings, SettingsError } from '../../config/settings.ts';
import { uniqueKeysSql } from '../../source/relations.ts';
import type { TransactionIdentity } from '../../source/source_connection.ts';

/** The name of the keys that sign, among those derived from EXPORTD_ENCRYPTION_KEYS. */
const signingPurpose = 'exportd query role';

const signed = (key: Buffer, ...message: readonly (string | number)[]): string =>
  createHmac('sha256', key).update(message.join(':')).digest('hex');

/**
 * Signs which project a transaction reads. The statements of a query could set the project, but not sign it: only
 * `exportd_query.team_id()` can read the key. A signature is worthless in any other transaction.
 */
export const signTeam = (key: Buffer, teamId: string, { pid, started }: TransactionIdentity): string =>
  signed(key, 'team', teamId, pid, started);

/** Signs that the statement of a process may be cancelled. */
export const signCancellation = (key: Buffer, pid: number): string => signed(key, 'cancel', pid);

const blockBytes = 64;

/** The padded forms of a key, with which PostgreSQL computes HMAC-SHA-256 by its `sha256()` (RFC 2104). */
function paddedKeys(key: Buffer): { readonly inner: Buffer; readonly outer: Buffer } {
  const padded = Buffer.concat([key], blockBytes);
  const combined = (pad: number): Buffer => padded.map((byte) => byte ^ pad) as Buffer;
  return { inner: combined(0x36), outer: combined(0x5c) };
}

/** The policies that exportd creates. It replaces no others. */
export const policyNames = {
  /** Restricts the role of queries to the rows of the transaction's project. */
  restriction: 'exportd_query_project',
  /** Lets the role read what no other policy grants it, within the restriction. */
  reading: 'exportd_query_reading',
  /** Keeps everything as it was for other roles, where exportd has enabled row security. */
  others: 'exportd_other_roles',
} as const;

/** The settings that the role of queries is known by. */
export type QueryRoleSettings = Pick<Settings, 'EXPORTD_QUERY_DATABASE_URL' | 'EXPORTD_ENCRYPTION_KEYS'>;

/** The role that queries run under. */
export interface QueryRole {
  readonly url: string;
  readonly name: string;
  readonly password: string;
  /** The keys that may sign for it; the first one signs. */
  readonly keys: readonly [Buffer, ...Buffer[]];
}

/** The role of queries, or undefined if queries run under the role of the source. @throws SettingsError */
export function queryRoleOf(settings: QueryRoleSettings): QueryRole | undefined {
  const { EXPORTD_QUERY_DATABASE_URL: url, EXPORTD_ENCRYPTION_KEYS: ring } = settings;
  if (url === undefined) return undefined;
  const { username, password } = URL.canParse(url) ? new URL(url) : { username: '', password: '' };
  if (username === '')
    throw new SettingsError(
      'EXPORTD_QUERY_DATABASE_URL has no user: it names the role that queries run under, as in postgresql://exportd_query:password@host/database.',
    );
  const [signing, ...older] = deriveKeys(ring ?? '', signingPurpose);
  if (!signing) throw new SettingsError('EXPORTD_ENCRYPTION_KEYS contains no key.');
  return {
    url,
    name: decodeURIComponent(username),
    password: decodeURIComponent(password),
    keys: [signing, ...older],
  };
}

/** The schema in the source with what the role of queries needs. */
export const querySchema = 'exportd_query';

const { escapeIdentifier, escapeLiteral } = pg;
const bytea = (bytes: Buffer): string => `decode('${bytes.toString('hex')}', 'hex')`;

/** The setting of a transaction that names its project, and the one that proves that exportd set it. */
export const teamSetting = 'exportd.team_id';
export const teamSignatureSetting = 'exportd.team_signature';

/**
 * The schema with the functions that the role of queries may call. They run with the rights of their owner (SECURITY
 * DEFINER), who alone can read the signing keys.
 */
export const authorizationSql = (role: string, keys: readonly Buffer[]): string => `
create schema if not exists ${querySchema};
revoke all on schema ${querySchema} from public;
grant usage on schema ${querySchema} to ${escapeIdentifier(role)};

create table if not exists ${querySchema}.signing_keys (inner_key bytea not null, outer_key bytea not null);
delete from ${querySchema}.signing_keys;
insert into ${querySchema}.signing_keys (inner_key, outer_key) values
${keys
  .map(paddedKeys)
  .map(({ inner, outer }) => `  (${bytea(inner)}, ${bytea(outer)})`)
  .join(',\n')};

-- The relations that queries read: the name in exportd's settings, and the relation that the role reads for it.
create table if not exists ${querySchema}.relations (name text primary key, relation regclass not null);
delete from ${querySchema}.relations;

-- Whether exportd signed a message, by HMAC-SHA-256.
create or replace function ${querySchema}.is_signed(message text, signature text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select exists (
    select from ${querySchema}.signing_keys
    where encode(sha256(outer_key || sha256(inner_key || convert_to(message, 'UTF8'))), 'hex') = signature
  )
$$;

-- The project of the transaction. The signature is that of this transaction alone, so that neither a query nor one who
-- has seen the signature of another transaction can choose the project.
create or replace function ${querySchema}.team_id() returns integer
language plpgsql stable parallel restricted security definer set search_path = pg_catalog, pg_temp as $$
declare
  team text := current_setting(${escapeLiteral(teamSetting)}, true);
  started bigint := extract(epoch from transaction_timestamp()) * 1000000;
begin
  if ${querySchema}.is_signed(
    concat_ws(':', 'team', team, pg_backend_pid(), started),
    current_setting(${escapeLiteral(teamSignatureSetting)}, true)
  ) then
    return team::integer;
  end if;
  raise insufficient_privilege using message = 'This transaction may not read the rows of a project.',
    hint = 'After a change of EXPORTD_ENCRYPTION_KEYS, run "exportd query setup".';
end
$$;

-- The relations of these names that the role may read, with their columns and unique keys. Domains are the types that they are based on.
drop function if exists ${querySchema}.readable(text[]);
create function ${querySchema}.readable(names text[])
returns table (name text, relation text, columns json, unique_keys json)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select known.name, format('%I.%I', nspname, relname),
    (select json_agg(json_build_array(attname,
       format_type(case typtype when 'd' then typbasetype else type.oid end, null)) order by attnum)
     from pg_attribute join pg_type as type on type.oid = atttypid
     where attrelid = class.oid and attnum > 0 and not attisdropped),
    ${uniqueKeysSql('class.oid')}
  from ${querySchema}.relations as known
  join pg_class as class on class.oid = known.relation
  join pg_namespace as namespace on namespace.oid = relnamespace
  where known.name = any (names)
$$;

-- Cancels the statement of another connection of the role, which may not do so itself.
create or replace function ${querySchema}.cancel(pid integer, signature text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if ${querySchema}.is_signed(concat_ws(':', 'cancel', pid), signature) then
    return pg_cancel_backend(pid);
  end if;
  raise insufficient_privilege using message = 'exportd did not ask to cancel this statement.';
end
$$;

revoke all on all tables in schema ${querySchema} from public, ${escapeIdentifier(role)};
revoke all on all functions in schema ${querySchema} from public, ${escapeIdentifier(role)};
grant execute on function ${querySchema}.team_id(), ${querySchema}.readable(text[]), ${querySchema}.cancel(integer, text)
  to ${escapeIdentifier(role)};
`;
