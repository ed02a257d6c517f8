import pg from 'pg';
import {
  type ContractColumn,
  type ContractType,
  type RelationRole,
  relationSettings,
  sourceContract,
  unconvertedTypes,
} from '../contract.ts';
import { type ColumnProblem, quotedName, type SourceRole } from './check_columns.ts';
import {
  type DraftView,
  findColumn,
  type FoundColumn,
  type ListedMapping,
  type MappedTable,
  type ReadCatalog,
  readRelationFacts,
  type RelationFacts,
  safeMessage,
  type SourceFinding,
} from './report.ts';

/** An expression of the view, and what a person has to know about it. */
interface Drafted {
  readonly sql: string;
  readonly comment?: string;
}

interface DraftOptions {
  /** The project of a relation without a column for it; 1 by default. */
  readonly teamId?: number | undefined;
  /** The role that reads the view. */
  readonly reader: string;
  /** Columns of the relation that a person gives to columns of the view, by the names of those. */
  readonly chosen?: Readonly<Record<string, string>> | undefined;
  /** The name of the view; `exportd_events` or alike by default, in the schema of the relation. */
  readonly name?: string | undefined;
}

/**
 * Drafts a view with all columns of the contract over a relation that lacks some, or has them with other types. The relation
 * stays unchanged. Columns are recognized by common names.
 */
export function draftView(
  role: RelationRole,
  facts: RelationFacts,
  problems: readonly ColumnProblem[],
  options: DraftOptions,
): DraftView {
  const drafted = draftColumns(role, facts, problems, options);
  const usual = `${facts.schema}.exportd_${role}`;
  const { name = facts.name === usual ? `${usual}_2` : usual } = options;
  const lines = drafted.map(({ column, sql, comment }, index) => {
    const separator = index === drafted.length - 1 ? '' : ',';
    return `  ${sql} as ${quotedColumn(column.name)}${separator}${comment === undefined ? '' : `  -- ${comment}`}`;
  });
  return {
    setting: relationSettings[role],
    name,
    sql: [
      `create view ${name} as`,
      'select',
      ...lines,
      `from ${facts.name} as source;`,
      ...(facts.owned ? [] : [`grant select on ${name} to ${options.reader};`]),
    ].join('\n'),
    to_choose: drafted.filter(({ sql }) => sql.startsWith('null::')).flatMap(({ column }) => chosen(column)),
  };
}

type DraftedColumn = Drafted & { readonly column: ContractColumn };

const draftColumns = (
  role: RelationRole,
  facts: RelationFacts,
  problems: readonly ColumnProblem[],
  options: DraftOptions,
): readonly DraftedColumn[] =>
  withCandidates(
    facts,
    sourceContract[role].columns.map((column) => ({
      column,
      ...draftColumn(column, facts, problems, options),
    })),
  ).map(({ comment, ...one }) => (comment === undefined ? one : { ...one, comment: inOneLine(comment) }));

/** A comment ends with its line, and may name columns and relations that others have created. */
const inOneLine = (comment: string): string => comment.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ');

/** `timestamp` is a type too, but a valid name of a column. */
const quotedColumn = (name: string): string => (name === 'timestamp' ? '"timestamp"' : name);

/** A column that exports need and for which nothing was found. */
const chosen = ({ name, fallback }: ContractColumn): string[] => (fallback === null ? [name] : []);

const timeComment = 'it must be set by PostgreSQL at each write, and decides the interval';
/** What a name alone does not say of a column that was guessed by it. */
const guessComments: Readonly<Record<string, string>> = {
  team_id: 'the number of the project: "exportd project create --id"',
  inserted_at: timeComment,
  updated_at: timeComment,
};

function draftColumn(
  column: ContractColumn,
  facts: RelationFacts,
  problems: readonly ColumnProblem[],
  { teamId = 1, chosen: given = {} }: DraftOptions,
): Drafted {
  const { name, type, otherNames, fallback } = column;
  const wanted = given[name];
  if (wanted !== undefined) return chosenColumn(column, wanted, facts);
  const own = findColumn(facts, name);
  if (own && !problems.some((problem) => problem.column === column)) return { sql: sourceColumn(own) };
  const candidates = [name, ...otherNames].flatMap((one) => findColumn(facts, one) ?? []);
  for (const candidate of candidates) {
    const converted = convert(candidate, type, facts);
    const comment = candidate.name === name ? undefined : guessComments[name];
    if (converted) return { ...(comment !== undefined && { comment }), ...converted };
  }
  if (name === 'team_id') return { sql: String(teamId), comment: 'the project of all rows' };
  const known = fromCatalog(column, facts);
  if (known) return known;
  if (fallback !== null) return { sql: fallback };
  return { sql: `null::${shortNames[type] ?? type}`, comment: `CHOOSE: ${column.why}` };
}

/** Defaults that PostgreSQL evaluates at each insert. */
const clock = /^\(?(now|clock_timestamp|statement_timestamp|transaction_timestamp)\(\)|^CURRENT_TIMESTAMP/i;

/**
 * What the catalogue says of a column that no name tells: the primary key identifies a row, the time with the clock as its
 * default is that of the insert, and the only other time is that of the event.
 */
function fromCatalog({ name, type }: ContractColumn, facts: RelationFacts): Drafted | undefined {
  const times = facts.columns.filter((one) => one.type.startsWith('timestamp') && one.readable);
  const [byClock, others] = [times.filter(isByClock), times.filter((one) => !isByClock(one))];
  const found =
    name === 'uuid' || name === 'id'
      ? [facts.columns.filter(({ is_key }) => is_key), 'the primary key']
      : name === 'inserted_at'
        ? [byClock, `its default is the clock; ${timeComment}`]
        : name === 'timestamp'
          ? [others.length > 0 ? others : byClock, 'the only time that fits']
          : name === 'created_at'
            ? [byClock, 'its default is the clock']
            : undefined;
  const [candidates = [], comment = ''] = (found ?? []) as [FoundColumn[]?, string?];
  const [only, ...more] = candidates;
  if (!only || more.length > 0) return undefined;
  const converted = convert(only, type, facts);
  return converted && { ...converted, comment: [comment, converted.comment].filter(Boolean).join('; ') };
}

const isByClock = (column: FoundColumn): boolean => column.default !== null && clock.test(column.default);

/** A person chose a column that does not exist or does not fit. The message is for users. */
export class InvalidMapping extends Error {
  override readonly name = 'InvalidMapping';
}

/** @throws InvalidMapping */
function chosenColumn({ name, type }: ContractColumn, wanted: string, facts: RelationFacts): Drafted {
  const found = findColumn(facts, wanted);
  if (!found)
    throw new InvalidMapping(
      `${facts.name} has no column "${wanted}". It has: ${facts.columns.map((one) => one.name).join(', ')}.`,
    );
  const converted = convert(found, type, facts);
  if (!converted)
    throw new InvalidMapping(`${wanted} is ${found.type}, which cannot be ${name}: that is ${type}.`);
  return converted;
}

/** How many rows are shown, and how many characters of a value. */
const [maxMappedRows, maxMappedText] = [20, 500];

/** Rejected values of rows, names and rights, and statements that took too long. */
const refusedRows = /^(22|42|57014)/;

/**
 * Drafts the view of events over a table with the columns that a person chose, and reads its first rows. It changes nothing.
 * @throws InvalidMapping
 */
export async function mapTable(
  read: ReadCatalog,
  table: string,
  options: DraftOptions,
): Promise<MappedTable> {
  const facts = await readRelationFacts(read, table);
  if (typeof facts === 'string')
    throw new InvalidMapping(
      facts === 'missing' ? `There is no relation ${table}.` : `The role may not use the schema of ${table}.`,
    );
  const names = sourceContract.events.columns.map(({ name }) => name);
  const unknown = Object.keys(options.chosen ?? {}).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new InvalidMapping(`Events have no column "${unknown}". They have: ${names.join(', ')}.`);
  const view = draftView('events', facts, [], options);
  const drafted = draftColumns('events', facts, [], options);
  return {
    script: [view.sql, indexOf(drafted, facts)].join('\n'),
    view,
    roles: drafted.map(({ column: { name, type, why }, sql, comment = null }) => ({
      name,
      type,
      why,
      sql,
      comment,
    })),
    columns: facts.columns.map(({ name, type }) => ({ name, type })),
    rows: view.to_choose.length > 0 ? null : await readMappedRows(read, drafted, facts),
  };
}

/** Not by the script, whose name of the view is any text. */
async function readMappedRows(
  read: ReadCatalog,
  drafted: readonly DraftedColumn[],
  { name }: RelationFacts,
): Promise<NonNullable<MappedTable['rows']>> {
  const expressions = drafted.map(
    ({ column, sql }) => `left((${sql})::text, ${maxMappedText}) as ${quotedName(column.name)}`,
  );
  try {
    return await read(`select ${expressions.join(', ')} from ${name} as source limit ${maxMappedRows}`);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || !refusedRows.test(error.code ?? '')) throw error;
    throw new InvalidMapping(`PostgreSQL cannot read the first rows as events: ${safeMessage(error)}.`);
  }
}

/**
 * The same for one of the tables that may have the events, named as `tables` has them. Without one, only those. `isRead`: no
 * relation has the name that exportd reads, so that the view gets it.
 * @throws InvalidMapping
 */
export async function mapListedTable(
  read: ReadCatalog,
  relation: string,
  { table, ...options }: Parameters<typeof mapTable>[2] & { readonly table?: string | undefined },
): Promise<ListedMapping> {
  const tables = await findTables(read);
  if (table === undefined) return { tables, mapping: null };
  if (!tables.includes(table) && (await findTables(read, table)).length === 0)
    throw new InvalidMapping(`${table} is no table with a column of a time that exportd's role can read.`);
  const isRead = (await readRelationFacts(read, relation)) === 'missing';
  const mapped = await mapTable(read, table, { ...options, ...(isRead && { name: unquoted(relation) }) });
  return { tables, mapping: { ...mapped, isRead } };
}

/** The index that pages of an export need, over the expressions of the view. Views and foreign tables have none. */
function indexOf(drafted: readonly DraftedColumn[], { name, kind }: RelationFacts): string {
  if (kind !== 'table' && kind !== 'partitioned table')
    return `-- ${inOneLine(`Index the tables below ${name} by these columns.`)}`;
  const keys = ['team_id', 'inserted_at', 'uuid']
    .map((key) => (drafted.find(({ column }) => column.name === key)?.sql ?? key).replaceAll('source.', ''))
    .filter((expression) => !/^\d+$/.test(expression))
    .map((expression) => (/^(\w+|"([^"]|"")+")$/.test(expression) ? expression : `(${expression})`));
  const concurrently = kind === 'table' ? ' concurrently' : '';
  return `create index${concurrently} on ${name} (${keys.join(', ')});`;
}

/** Names the columns that a person can choose: those of a type that fits and that no other column uses. */
function withCandidates(facts: RelationFacts, drafted: readonly DraftedColumn[]): DraftedColumn[] {
  const used = new Set(drafted.map(({ sql }) => sql));
  return drafted.map((one) => {
    const { column, sql } = one;
    const isEmptyText = sql === column.fallback && column.otherNames.length > 0 && column.type === 'text';
    const isToChoose = sql !== column.fallback && sql.startsWith('null::');
    if (!isEmptyText && !isToChoose) return one;
    const fitting = facts.columns
      .filter(({ type }) => unconvertedTypes[column.type].includes(type))
      .map(sourceColumn)
      .filter((name) => !used.has(name));
    if (fitting.length === 0) return one;
    const names = fitting.join(' or ');
    return { ...one, comment: `${isToChoose ? 'CHOOSE' : 'or'} ${names}: ${column.why}` };
  });
}

const shortNames: Readonly<Partial<Record<ContractType, string>>> = {
  'timestamp with time zone': 'timestamptz',
};

const sourceColumn = ({ name }: FoundColumn): string =>
  /^[a-z_][a-z0-9_]*$/.test(name) ? `source.${name}` : `source.${quotedName(name)}`;

const numbers: ReadonlySet<string> = new Set([
  'smallint',
  'integer',
  'bigint',
  'numeric',
  'real',
  'double precision',
]);
const texts: ReadonlySet<string> = new Set(unconvertedTypes.text);

/** The name of a relation without its schema, for a string literal. */
const literalOf = ({ name, schema }: RelationFacts): string =>
  name.slice(schema.length + 1).replaceAll("'", "''");

/** A column of the relation as the type of the contract; undefined if there is no usual conversion. */
function convert(found: FoundColumn, type: ContractType, facts: RelationFacts): Drafted | undefined {
  const sql = sourceColumn(found);
  const from = found.type;
  if (unconvertedTypes[type].includes(from) && from !== 'timestamp without time zone') return { sql };
  const isText = texts.has(from);
  switch (type) {
    case 'uuid':
      if (isText) return { sql: `${sql}::uuid` };
      // The same uuid each time, and another one in each relation.
      if (numbers.has(from)) return { sql: `md5('${literalOf(facts)} ' || ${sql}::text)::uuid` };
      return undefined;
    case 'timestamp with time zone':
      if (from === 'timestamp without time zone')
        return { sql: `${sql} at time zone 'UTC'`, comment: 'if its times are UTC' };
      if (from === 'date') return { sql: `${sql}::timestamp at time zone 'UTC'` };
      if (numbers.has(from))
        return { sql: `to_timestamp(${sql})`, comment: 'seconds since 1970; divide milliseconds by 1000.0' };
      return undefined;
    case 'text':
      return { sql: `${sql}::text` };
    case 'jsonb':
      return isText ? { sql: `${sql}::jsonb` } : { sql: `to_jsonb(${sql})` };
    case 'boolean':
      if (numbers.has(from)) return { sql: `${sql} <> 0` };
      return from.startsWith('timestamp') ? { sql: `${sql} is not null` } : undefined;
    case 'integer':
      return undefined;
    case 'bigint':
      return isText || numbers.has(from) ? { sql: `${sql}::${type}` } : undefined;
    default:
      return undefined;
  }
}

/** What a person chose for the drafts of views. */
export interface DraftChoice {
  /** The project of a table without a column for it; 1 by default. */
  readonly teamId?: number | undefined;
  /** The table of the events, one of `SourceReport.tables`, while the configured relation does not exist. */
  readonly table?: string | undefined;
}

/** The finding for a relation that does not exist. */
export const missingRelation = (relation: string, setting: string, hasTables: boolean): SourceFinding => ({
  level: 'error',
  subject: relation,
  column: null,
  message: `It does not exist. ${hasTables ? `Create it as a view over one of your tables, or set` : 'Set'} ${setting} to the name of your table or view.`,
  sql: null,
});

/**
 * Lists the relations that may have the events, and drafts a view over the chosen one. The view has the configured name, so
 * that no setting has to change.
 */
export async function replaceMissingEvents(
  read: ReadCatalog,
  relation: string,
  { role: reader }: SourceRole,
  { teamId, table }: DraftChoice,
): Promise<{ readonly tables: readonly string[]; readonly view: DraftView | null }> {
  const tables = await findTables(read);
  const isListed = table !== undefined && tables.includes(table);
  const facts = isListed ? await readRelationFacts(read, table) : 'missing';
  if (typeof facts === 'string') return { tables, view: null };
  return { tables, view: draftView('events', facts, [], { teamId, reader, name: unquoted(relation) }) };
}

/** The name without quotes that it does not need. */
const unquoted = (relation: string): string => relation.replaceAll(/"([a-z_][a-z0-9_]*)"/g, '$1');

/** More tables than a person reads. */
const maxTables = 50;

/**
 * The relations that the role reads and that have a column of a time, without partitions, or the one of a name. Those with most rows
 * come first.
 */
async function findTables(read: ReadCatalog, table: string | null = null): Promise<string[]> {
  const tables = await read<{ name: string }>(
    `select format('%I.%I', nspname, relname) as name
     from pg_catalog.pg_class relation join pg_catalog.pg_namespace namespace on namespace.oid = relnamespace
     where relkind in ('r', 'p', 'v', 'm', 'f') and not relispartition
       and ($1::text is null or format('%I.%I', nspname, relname) = $1)
       and nspname !~ '^pg_' and nspname not in ('information_schema', 'exportd')
       and has_schema_privilege(namespace.oid, 'usage') and has_table_privilege(relation.oid, 'select')
       and exists (select from pg_catalog.pg_attribute
         where attrelid = relation.oid and attnum > 0 and not attisdropped
           and atttypid in ('timestamptz'::regtype, 'timestamp'::regtype))
     order by reltuples desc, name limit ${maxTables}`,
    [table],
  );
  return tables.map(({ name }) => name);
}
