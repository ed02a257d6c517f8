import pg from 'pg';
import {
  type AccessPath,
  type ContractColumn,
  keyColumnNames,
  type RelationRole,
  sourceContract,
  unconvertedTypes,
} from '../contract.ts';
import {
  findColumn,
  findingOf,
  type FoundColumn,
  type ReadCatalog,
  type RelationFacts,
  safeMessage,
  type SourceFinding,
} from './report.ts';
import type { RowOrigins } from '../row_origins.ts';

/** Columns that exist with another type than the contract's, or not at all. */
export interface ColumnProblem {
  readonly column: ContractColumn;
  /** What was found; undefined if the relation lacks the column. */
  readonly found: FoundColumn | undefined;
  readonly message: string;
}

export const quotedName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const usesOf = (column: ContractColumn): readonly string[] => column.uses(`r.${quotedName(column.name)}`);

/** The columns whose type PostgreSQL rejects where exports use them, and those that are missing. */
export async function findColumnProblems(
  read: ReadCatalog,
  role: RelationRole,
  facts: RelationFacts,
): Promise<ColumnProblem[]> {
  const { columns } = sourceContract[role];
  const present = columns.filter(({ name }) => findColumn(facts, name));
  const missing = columns
    .filter((column) => !present.includes(column) && column.optional !== true)
    .map((column) => ({ column, found: undefined, message: `Column ${column.name} is missing.` }));
  const rejected: ColumnProblem[] = [];
  // One statement is enough for a relation that fits.
  if (await rejectionOf(read, facts, present.flatMap(usesOf)))
    for (const column of present) {
      const rejection = await rejectionOf(read, facts, usesOf(column));
      const found = findColumn(facts, column.name);
      // A missing right is a finding of its own.
      if (rejection?.code?.startsWith('42') === true && rejection.code !== '42501')
        rejected.push({
          column,
          found,
          message: `Column ${column.name} has type ${found?.type ?? 'unknown'}, exports need ${column.type}: ${safeMessage(rejection)}.`,
        });
    }
  return [...missing, ...rejected];
}

/** PostgreSQL's error when it plans to compute expressions of a relation's rows. */
async function rejectionOf(
  read: ReadCatalog,
  { name }: RelationFacts,
  expressions: readonly string[],
): Promise<pg.DatabaseError | undefined> {
  try {
    await read(`explain select ${expressions.join(', ')} from ${name} r`);
    return undefined;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return error;
    throw error;
  }
}

/** Columns that fit, but are converted in each row or may be null. */
export function warnOfColumns(
  role: RelationRole,
  facts: RelationFacts,
  problems: readonly ColumnProblem[],
  { zone }: SourceRole,
): SourceFinding[] {
  const subject = facts.name;
  return sourceContract[role].columns.flatMap((column): SourceFinding[] => {
    const { name } = column;
    const found = findColumn(facts, name);
    if (!found || problems.some((problem) => problem.column === column)) return [];
    const findings: SourceFinding[] = [];
    const warn = (message: string, sql?: string) =>
      findings.push(findingOf('warning', subject, name, message, sql));
    if (!unconvertedTypes[column.type].includes(found.type))
      warn(
        `Column ${name} has type ${found.type} and is converted to ${column.type} in each row. A value that cannot be converted fails its run.`,
      );
    if (found.type === 'timestamp without time zone')
      warn(`Column ${name} has no time zone and is read as UTC.${isUtc(zone) ? '' : offOf(column, zone)}`);
    if (facts.kind.endsWith('table') && !found.not_null && keyColumnNames.has(name))
      warn(
        `Column ${name} may be null. A row without ${name} is never exported, or fails its run.`,
        `alter table ${subject} alter column ${quotedName(name)} set not null;`,
      );
    return findings;
  });
}

const isUtc = (zone: string): boolean => /^(?:etc\/)?(?:utc|gmt|uct|zulu|universal|greenwich)$/i.test(zone);

/** What follows of a zone that sessions have, for times that such a session writes without it. */
const offOf = ({ name, uses }: ContractColumn, zone: string): string =>
  ` Sessions have the zone ${zone}: times that they write, as by a default of now(), are off by it.${
    uses(name).length > 1
      ? ` Rows that seem older than they are belong to intervals that were exported already, and only comparisons find them; rows that seem newer wait for the clock.`
      : ''
  } Use timestamptz, or "${name} at time zone '${zone}'" in a view.`;

/** A node of a plan, as far as it is read. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Schema?: string;
  readonly Alias?: string;
  readonly Output?: readonly string[];
  readonly Plans?: readonly PlanNode[];
}

/** Nodes that read or sort more rows than a page has. Incremental sorts read few. */
const expensiveNodes: ReadonlySet<string> = new Set([
  'Seq Scan',
  'Sample Scan',
  'Sort',
  'Aggregate',
  'WindowAgg',
  'Unique',
  'SetOp',
  'Hash Join',
]);

/** With these, PostgreSQL plans an expensive node only if no index avoids it, however few rows there are now. */
const preferIndexes = { enable_seqscan: 'off', enable_bitmapscan: 'off', enable_sort: 'off' };

/** How PostgreSQL prints functions of the clock and of chance. */
const changingFunction =
  /\b(?:now|(?:transaction|statement|clock)_timestamp|timeofday|random|random_normal|gen_random_uuid|uuid_generate_v\d\w*|uuidv[47]|nextval)\(.*?\)|\b(?:CURRENT|LOCAL)_?(?:DATE|TIMESTAMP|TIME)\b/;

/** Finds columns of a view that decide where a row belongs, or which row it is, and that each reading computes anew. */
export async function checkChangingKeys(
  read: ReadCatalog,
  role: RelationRole,
  facts: RelationFacts,
): Promise<SourceFinding[]> {
  if (facts.kind !== 'view') return [];
  const keys = sourceContract[role].columns.filter(
    ({ name, uses }) => name === 'team_id' || uses(name).length > 1,
  );
  const plan = await planOf(
    read,
    `select ${keys.map(({ name }) => `r.${quotedName(name)}`).join(', ')} from ${facts.name} r`,
  );
  // Below the selected columns there may be those of the view, or of each partition.
  const outputs = nodesOf(plan).flatMap(({ Output: output }) => (output ? [output] : []));
  const expressionsOf = (name: string, index: number): readonly (string | undefined)[] =>
    outputs.flatMap((output) => [
      ...(output.length === keys.length ? [output[index]] : []),
      ...(output.length === facts.columns.length
        ? [output[facts.columns.findIndex((column) => column.name === name)]]
        : []),
    ]);
  return keys.flatMap(({ name }, index) => {
    const [changing] = expressionsOf(name, index).flatMap(
      (expression) => changingFunction.exec(expression ?? '')?.[0] ?? [],
    );
    return changing === undefined
      ? []
      : [
          findingOf(
            'error',
            facts.name,
            name,
            `Column ${name} is ${changing}, which each reading computes anew: a row is never the same twice, so that exports lose or repeat it. Use a column that the table stores.`,
          ),
        ];
  });
}

/** Finds the ways in which exports look for rows that no index supports, and the indexes that they need. */
export async function checkAccessPaths(
  read: ReadCatalog,
  role: RelationRole,
  facts: RelationFacts,
  teamId: number,
): Promise<SourceFinding[]> {
  // Its rows are found by the other server.
  if (facts.kind === 'foreign table') return [];
  const findings: SourceFinding[] = [];
  for (const path of sourceContract[role].accessPaths) {
    const plan = await planOf(read, statementOf(path, facts, teamId), preferIndexes);
    const expensive = nodesOf(plan).find((node) => expensiveNodes.has(node['Node Type']));
    if (!expensive) continue;
    const message = `No index finds rows by (${path.columns.join(', ')}), so that ${path.without} (${describeNode(expensive)}).`;
    findings.push(findingOf('warning', facts.name, null, message, await indexStatement(read, facts, path)));
  }
  return findings;
}

const statementOf = ({ where, orderBy }: AccessPath, { name }: RelationFacts, teamId: number): string => {
  const order = orderBy === null ? '' : ` order by ${orderBy} fetch first 1000 rows with ties`;
  return `select 1 from ${name} r where ${where.replace('$team', String(teamId))}${order}`;
};

async function planOf(
  read: ReadCatalog,
  statement: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<PlanNode | undefined> {
  const [row] = await read<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(
    `explain (format json, verbose, costs off) ${statement}`,
    [],
    settings,
  );
  return row?.['QUERY PLAN'][0]?.Plan;
}

const nodesOf = (node: PlanNode | undefined): PlanNode[] =>
  node ? [node, ...(node.Plans ?? []).flatMap(nodesOf)] : [];

const describeNode = (node: PlanNode): string =>
  node['Relation Name'] === undefined
    ? node['Node Type']
    : `${node['Node Type']} on ${node['Relation Name']}`;

/** The statement that creates the index of an access path; null if a view has more than one table. */
async function indexStatement(
  read: ReadCatalog,
  facts: RelationFacts,
  { columns }: AccessPath,
): Promise<string | null> {
  const parts = columns.map((column) => {
    const [name = '', ...collation] = column.split(' ');
    return { name, suffix: collation.length === 0 ? '' : ` ${collation.join(' ')}` };
  });
  if (facts.kind !== 'view') {
    // PostgreSQL does not create the index of a partitioned table concurrently.
    const concurrently = facts.kind === 'partitioned table' ? '' : ' concurrently';
    const list = parts.map(({ name, suffix }) => `${quotedName(name)}${suffix}`);
    return `create index${concurrently} on ${facts.name} (${list.join(', ')});`;
  }
  const plan = await planOf(
    read,
    `select ${parts.map(({ name }) => `r.${quotedName(name)}`).join(', ')} from ${facts.name} r`,
  );
  const { Output: outputs, Alias: alias, 'Relation Name': table, Schema: schema, Plans: plans } = plan ?? {};
  if (!outputs || alias === undefined || table === undefined || schema === undefined || plans) return null;
  const list = outputs.flatMap((output, index) => {
    const expression = withoutAlias(output, alias);
    // A constant needs no index.
    if (expression === output) return [];
    const isColumn = /^(\w+|"([^"]|"")+")$/.test(expression);
    return [`${isColumn ? expression : `(${expression})`}${parts[index]?.suffix ?? ''}`];
  });
  return list.length === 0
    ? null
    : `create index concurrently on ${quotedName(schema)}.${quotedName(table)} (${list.join(', ')});`;
}

/** An expression of a plan without the name of the only table that it reads. */
const withoutAlias = (expression: string, alias: string): string =>
  expression.replaceAll(`${alias}.`, '').replaceAll(`${quotedName(alias)}.`, '');

/** The role that reads the source. */
export interface SourceRole {
  /** Its quoted name. */
  readonly role: string;
  /** Whether it sees when the transactions of other roles started. */
  readonly sees_sessions: boolean;
  /** The time zone of its sessions, unless they set another. */
  readonly zone: string;
  /** The encoding of the database. */
  readonly encoding: string;
}

/** Reads which role exportd has in the source. */
export async function readSourceRole(read: ReadCatalog): Promise<SourceRole> {
  const [role] = await read<SourceRole>(
    `select quote_ident(current_user) as role, pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_sessions,
       (select reset_val from pg_catalog.pg_settings where name = 'TimeZone') as zone, getdatabaseencoding() as encoding`,
  );
  return role ?? { role: 'current_user', sees_sessions: true, zone: 'UTC', encoding: 'UTF8' };
}

const uncheckedBytes = findingOf(
  'warning',
  'the database',
  null,
  `Its encoding is SQL_ASCII, so that PostgreSQL stores any bytes. Exports and queries read UTF-8: on_bad_row decides about a row with a text in another encoding, and a distinct id with one fails the runs of persons. Convert such texts, or copy the database into one with the encoding UTF8.`,
);

/** PostgreSQL cannot take the bytes of UTF-8 as text of these, to hash them (`utf8Bytes`). */
const hasSeveralBytes = (encoding: string): boolean => /^(?:EUC_|MULE_INTERNAL)/.test(encoding);

const unhashedBytes = (encoding: string): SourceFinding =>
  findingOf(
    'warning',
    'the database',
    null,
    `Its encoding is ${encoding}, in which PostgreSQL cannot hash the UTF-8 of a distinct id: runs of persons fail while an interval has one that is not ASCII. Copy the database into one with the encoding UTF8.`,
  );

/** Checks what the role needs besides the relations. */
export const checkRole = ({ role, sees_sessions, encoding }: SourceRole): SourceFinding[] => [
  ...(encoding === 'SQL_ASCII' ? [uncheckedBytes] : []),
  ...(hasSeveralBytes(encoding) ? [unhashedBytes(encoding)] : []),
  ...(sees_sessions
    ? []
    : [
        findingOf(
          'warning',
          `role ${role}`,
          null,
          'The role does not see when transactions of other roles started, so that runs wait for all of them.',
          `grant pg_read_all_stats to ${role};`,
        ),
      ]),
];

/** Checks that the role may read a relation, and that it sees all rows in time. */
export function checkRelationRights(
  role: RelationRole,
  facts: RelationFacts,
  reader: SourceRole,
): SourceFinding[] {
  const { name, row_security } = facts;
  const finding = (level: SourceFinding['level'], message: string, sql?: string) =>
    findingOf(level, name, null, message, sql);
  const unreadable = sourceContract[role].columns
    .map((column) => findColumn(facts, column.name))
    .filter((column) => column?.readable === false);
  return [
    ...(unreadable.length === 0
      ? []
      : [
          finding(
            'error',
            `The role ${reader.role} may not read it.`,
            `grant select on ${name} to ${reader.role};`,
          ),
        ]),
    ...(row_security
      ? [
          finding(
            'error',
            `Policies of row security hide rows from ${reader.role}, so that PostgreSQL rejects exports. Let the role bypass them, or create a policy that shows it all rows.`,
            `alter role ${reader.role} bypassrls;`,
          ),
        ]
      : []),
  ];
}

/** Names relations whose rows appear without a transaction of the source's server: also below views, and partitions. */
export const checkRowOrigins = ({ unseen, subscriptions }: RowOrigins): SourceFinding[] => [
  ...unseen.map(({ name, kind, changes = [] }) =>
    findingOf('warning', name, null, `${unseenMessages[kind](changes.join(', '))} ${comparisonsOnly}`),
  ),
  ...subscriptions.map(({ name, is_ready }) =>
    findingOf(
      'warning',
      `subscription ${name}`,
      null,
      is_ready
        ? 'It writes the source. Runs wait until it has applied what its publisher had written at the end of the interval and EXPORTD_SETTLE_DELAY after it. A transaction that commits on the publisher later is found by comparisons only.'
        : 'It writes the source, and is disabled or still copies its tables. Manifests say "settled": false until it has caught up.',
    ),
  ),
];

const unseenMessages: Readonly<Record<RowOrigins['unseen'][number]['kind'], (changes: string) => string>> = {
  'foreign table': () => 'It is a foreign table: runs do not wait for the transactions of its server.',
  'materialized view': () => 'It is a materialized view: a refresh adds rows to ended intervals.',
  'distributed table': () => 'Citus distributes it: runs do not wait for the transactions of other nodes.',
  view: (changes) =>
    `Its rows or values change from one reading to the next, because its definition has ${changes}: a row that it hides now appears in an ended interval, and a value that it computes differs from the file. Read the table itself, whose late rows runs wait for, or declare functions of yours IMMUTABLE that always return the same.`,
};
const comparisonsOnly = 'Manifests say "settled": false, and late rows are found by comparisons only.';

/** The finding for a relation in a schema that the role may not use. */
export function forbiddenSchema(relation: string, { role }: SourceRole): SourceFinding {
  const [name = ''] = /"(?:[^"]|"")+"$/.exec(relation) ?? [];
  const schema = relation.slice(0, -name.length - 1);
  return {
    level: 'error',
    subject: relation,
    column: null,
    message: `The role ${role} may not use the schema ${schema}.`,
    sql: `grant usage on schema ${schema} to ${role};\ngrant select on ${relation} to ${role};`,
  };
}
