/** Where the rows of relations come from, if not from transactions of their server: foreign tables, subscriptions, views. */
import { hidesRowsSql, type Relations } from './relations.ts';
import type { BarrierCheck } from './source.ts';
import type { ReadTransaction } from './source_connection.ts';

/** A relation whose rows another server, or another statement, writes. */
interface UnderlyingRelation {
  readonly oid: number;
  /** The quoted name with its schema. */
  readonly name: string;
  readonly kind: 'r' | 'p' | 'v' | 'm' | 'f';
  /** Whether it is one that exportd names, of which policies hide rows from its role. */
  readonly hides_rows: boolean;
  /** Whether Citus is installed, whose tables any node may write. */
  readonly has_citus: boolean;
  readonly subscriptions: readonly Subscription[];
  /** What of a view's definition has other rows or values from one reading to the next; see `changesOfViewSql`. */
  readonly changes: readonly string[];
}

/** A subscription of logical replication that writes a relation. */
export interface Subscription {
  readonly name: string;
  /** The first copy of the relation is done, and the subscription is enabled. */
  readonly is_ready: boolean;
  /** The publisher's time up to which changes were applied (ISO 8601); null while nothing is received. */
  readonly applied_until: string | null;
}

/** A relation in which rows appear that no transaction of the server shows. */
interface UnseenRows {
  readonly name: string;
  readonly kind: 'foreign table' | 'materialized view' | 'distributed table' | 'view';
  /** Of a view: what of its definition has other rows or values from one reading to the next. */
  readonly changes?: readonly string[];
}

/** Where the rows of relations come from, if not from transactions of their server. Names are quoted, with their schema. */
export interface RowOrigins {
  readonly unseen: readonly UnseenRows[];
  /** The subscriptions that write rows. */
  readonly subscriptions: readonly Subscription[];
  /** The named relations of which policies hide rows. */
  readonly hidden: readonly string[];
}

/**
 * SQL: what of a view's definition has other rows or values from one reading to the next, as JSON: the clock, chance, a limit, and
 * functions of users that may use them. The definition is the stored tree, since `pg_depend` has no functions of PostgreSQL
 * itself. Its stable functions depend on the settings of the session alone, those of the clock excepted. Of extensions only
 * volatile functions count, since many call functions stable that a dictionary configures.
 * @param view SQL of its oid
 */
const changesOfViewSql = (view: string): string => `(
  select coalesce(json_agg(distinct what order by what), '[]')
  from pg_catalog.pg_rewrite rule cross join lateral (
    select case when pronamespace = 'pg_catalog'::regnamespace then proname::text
        else format('%I.%I', pronamespace::regnamespace, proname) end || '()' as what
    from regexp_matches(ev_action::text, ':(?:funcid|opfuncid|winfnoid|aggfnoid) ([0-9]+)', 'g') as used (oid)
    join pg_catalog.pg_proc function on function.oid = used.oid[1]::oid
    where provolatile = 'v' or case when pronamespace = 'pg_catalog'::regnamespace
      then proname in ('now', 'transaction_timestamp', 'statement_timestamp') or proname = 'age' and pronargs = 1
      else provolatile = 's' and not exists (select from pg_catalog.pg_depend
        where classid = 'pg_proc'::regclass and objid = function.oid and deptype = 'e') end
    union all
    -- CURRENT_DATE, CURRENT_TIMESTAMP and the like; later numbers are names of roles.
    select 'current_timestamp' where ev_action::text ~ '[{]SQLVALUEFUNCTION :op [0-8] '
    union all
    select 'limit' where ev_action::text ~ ':limit(Count|Offset) [{]'
    union all
    select 'tablesample' where ev_action::text ~ ':tablesample [{]'
  ) as changing
  where rule.ev_class = ${view})`;

/**
 * SQL: the oids of relations $1 in schemas $2. Without the right to use its schema, even the name of a relation is an error.
 * Nothing may need that relation.
 */
const namedRelations = `
  select to_regclass(relation) from unnest($1::text[], $2::text[]) as named (relation, schema)
  where schema is null
    or (select has_schema_privilege(oid, 'usage') from pg_catalog.pg_namespace where nspname = schema)`;

/**
 * Whether all relations are tables of which no policies hide rows, in a database whose rows only its own transactions write: what is below
 * them need not be read, which takes PostgreSQL as long as the rows of a small interval.
 */
const arePlainQuery = `
  select coalesce(bool_and(relkind in ('r', 'p') and not row_security_active(oid)), true)
    and not exists (select from pg_catalog.pg_foreign_table) and not exists (select from pg_catalog.pg_subscription_rel)
    and to_regclass('pg_dist_partition') is null as are_plain
  from pg_catalog.pg_class where oid in (${namedRelations})`;

/**
 * The relations below others: what views select from, partitions and children. `pg_dist_partition` is a table of Citus,
 * which another statement reads where it exists.
 */
const underlyingQuery = `
  with recursive under as (
    select oid, relkind, true as is_named from pg_catalog.pg_class where oid in (${namedRelations})
    union
    select below.oid, below.relkind, false from under
    cross join lateral (
      select inhrelid as oid from pg_catalog.pg_inherits where inhparent = under.oid
      union all
      select refobjid from pg_catalog.pg_rewrite rule
      join pg_catalog.pg_depend on classid = 'pg_rewrite'::regclass and objid = rule.oid
        and refclassid = 'pg_class'::regclass and refobjid <> under.oid
      where rule.ev_class = under.oid and under.relkind in ('v', 'm')
    ) as next join pg_catalog.pg_class below on below.oid = next.oid
  )
  select distinct on (name, under.oid) under.oid, format('%I.%I', nspname, relname) as name, under.relkind as kind,
    -- Only the policies of the named relation apply, and of tables below a view those for its owner, which PostgreSQL rejects.
    is_named and ${hidesRowsSql('under.oid')} as hides_rows,
    to_regclass('pg_dist_partition') is not null as has_citus,
    (select coalesce(json_agg(json_build_object('name', subname, 'is_ready', subenabled and srsubstate = 'r',
        'applied_until', (select to_char(max(latest_end_time) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
          from pg_catalog.pg_stat_subscription stat where stat.subid = subscription.oid and stat.relid is null))
        order by subname), '[]')
     from pg_catalog.pg_subscription_rel
     join pg_catalog.pg_subscription subscription on subscription.oid = srsubid
     where srrelid = under.oid) as subscriptions,
    case relation.relkind when 'v' then ${changesOfViewSql('under.oid')} else '[]' end as changes
  from under join pg_catalog.pg_class relation on relation.oid = under.oid
  join pg_catalog.pg_namespace namespace on namespace.oid = relnamespace
  order by name, under.oid, is_named desc`;

/** The schema of a quoted name; null if it has none. */
const schemaOf = (relation: string): string | null =>
  /^"((?:[^"]|"")+)"\."/.exec(relation)?.[1]?.replaceAll('""', '"') ?? null;

/** Reads where the rows of relations come from. Relations that do not exist are left out. */
export async function readRowOrigins(
  connection: Pick<ReadTransaction['connection'], 'query'>,
  { events, persons, person_distinct_ids }: Relations,
): Promise<RowOrigins> {
  const named = [events, persons, person_distinct_ids];
  const values = [named, named.map(schemaOf)];
  const plain = await connection.query<{ are_plain: boolean }>(arePlainQuery, values);
  if (plain.rows[0]?.are_plain === true) return { unseen: [], subscriptions: [], hidden: [] };
  const { rows: relations } = await connection.query<UnderlyingRelation>(underlyingQuery, values);
  const distributed = relations.some(({ has_citus }) => has_citus)
    ? (
        await connection.query<{ oid: number }>(
          'select logicalrelid::oid as oid from pg_dist_partition where logicalrelid::oid = any ($1::oid[])',
          [relations.map(({ oid }) => oid)],
        )
      ).rows.map(({ oid }) => oid)
    : [];
  const written = relations.flatMap((relation) => relation.subscriptions);
  return {
    unseen: relations.flatMap((relation) => unseenRows(relation, distributed)),
    subscriptions: written
      .filter(({ name }, index) => written.findIndex((one) => one.name === name) === index)
      // One that still copies a relation is not ready, whatever its others are.
      .map((one) => ({
        ...one,
        is_ready: written.every(({ name, is_ready }) => name !== one.name || is_ready),
      })),
    hidden: relations.flatMap(({ name, hides_rows }) => (hides_rows ? [name] : [])),
  };
}

function unseenRows(
  { oid, name, kind, changes }: UnderlyingRelation,
  distributed: readonly number[],
): readonly UnseenRows[] {
  if (changes.length > 0) return [{ name, kind: 'view', changes }];
  if (distributed.includes(oid)) return [{ name, kind: 'distributed table' }];
  if (kind === 'f') return [{ name, kind: 'foreign table' }];
  return kind === 'm' ? [{ name, kind: 'materialized view' }] : [];
}

/** Policies hide rows of the source from exportd's role. An export would lack them silently. */
class RowsHidden extends Error {
  override readonly name = 'RowsHidden';

  constructor(relations: readonly string[]) {
    super(
      `Policies of row security hide rows of ${relations.join(', ')} from exportd's role. Run "alter role … bypassrls" for the role of SOURCE_DATABASE_URL, or create a policy that shows it all rows.`,
    );
  }
}

/** Reads where the rows come from, once in a transaction. */
export type ReadOrigins = () => Promise<RowOrigins>;

export function originsReader(
  connection: Pick<ReadTransaction['connection'], 'query'>,
  relations: Relations,
): ReadOrigins {
  let origins: Promise<RowOrigins> | undefined;
  return () => (origins ??= readRowOrigins(connection, relations));
}

/**
 * Completes the check of a barrier that is open for all transactions of the server: rows from elsewhere may still appear.
 * @throws RowsHidden
 */
export async function withUnseenRows(origins: ReadOrigins, check: BarrierCheck): Promise<BarrierCheck> {
  if (check.state.phase !== 'open') return check;
  const { hidden, unseen } = await origins();
  if (hidden.length > 0) throw new RowsHidden(hidden);
  return unseen.length > 0
    ? {
        ...check,
        unseen: unseen.map(({ name, kind, changes }) =>
          changes
            ? `${name} is a view that changes from one reading to the next (${changes.join(', ')})`
            : `${name} is a ${kind}`,
        ),
      }
    : check;
}
