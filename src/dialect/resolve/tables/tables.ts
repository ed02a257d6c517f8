import type { NumberLiteral, Ratio, Sample, Table } from '../../ast.ts';
import { DialectError, nearestName } from '../../query_text.ts';
import { typeOfColumn, type WarehouseTable } from '../../schema.ts';
import { bind, identifier, joinSql, sql, type Sql } from '../../sql.ts';
import { column, type Relation, TeamRelation } from '../relation.ts';
import { Statement } from '../statement.ts';
import { EventsRelation, GroupsRelation } from './events.ts';
import { CohortsRelation, columnsOf, informationSchemaRelation, type NamedColumn } from './system_tables.ts';
import {
  builtInTables,
  cohortFields,
  PersonDistinctIdsRelation,
  PersonsRelation,
  rawDistinctIdFields,
  StoredRelation,
  unsupportedTables,
} from './persons.ts';
import {
  rawRecordingFields,
  recordingFields,
  sessionId,
  SessionReplayEventsRelation,
  SessionsRelation,
} from './sessions.ts';

/**
 * The sampling key of each table. A sample has all rows of a key or none. Tables sampled by distinct id contain the
 * same ids.
 */
const sampleKeys: ReadonlyMap<string, Sql> = new Map([
  ['events', identifier('distinct_id')],
  ['persons', identifier('id')],
  ['person_distinct_ids', identifier('distinct_id')],
  ['sessions', sessionId],
  ['session_replay_events', identifier('distinct_id')],
]);

/** hashtextextended() returns 64-bit integers from this one up. */
const minHash = -(2n ** 63n);
const hashCount = 2n ** 64n;

/** The condition of a table's SAMPLE; null for all rows. @throws DialectError */
function samplingCondition(statement: Statement, { path, sample }: Table): Sql | null {
  if (sample === null) return null;
  const id = sampleKeys.get(path.map(({ text }) => text).join('.'));
  if (id === undefined) throw unsupportedSampleError(statement, sample);
  const { from, to } = hashRange(statement, sample);
  const hash = sql`hashtextextended(${id}::text, 0)`;
  const bounds = [
    ...(from === minHash ? [] : [sql`${hash} >= ${bind(String(from), 'int8')}`]),
    ...(to >= minHash + hashCount ? [] : [sql`${hash} < ${bind(String(to), 'int8')}`]),
  ];
  return bounds.length === 0 ? null : joinSql(bounds, ' and ');
}

/** The error for SAMPLE of a table without a sampling key. */
export const unsupportedSampleError = (statement: Statement, sample: Sample): DialectError =>
  statement.error(
    'This table cannot be sampled.',
    sample,
    `SAMPLE is supported for ${[...sampleKeys.keys()].join(', ')}.`,
  );

/** The hash range of a sample: `to` is exclusive and may lie beyond the last hash. */
function hashRange(
  statement: Statement,
  { ratio, offset }: Sample,
): { readonly from: bigint; readonly to: bigint } {
  const requested = fractionOf(statement, ratio);
  const share = requested.numerator === 0n ? whole : requested;
  const offsetShare = offset === null ? none : fractionOf(statement, offset);
  if (share.numerator > share.denominator)
    throw statement.error(
      'A sampling ratio must be at most 1.',
      ratio,
      'For example 0.1 or 1/10; row counts are not supported.',
    );
  if (offset !== null && offsetShare.numerator >= offsetShare.denominator)
    throw statement.error('A sampling offset must be below 1.', offset, 'For example 0.5 or 1/2.');
  if (offset !== null && offsetShare.numerator > 0n && share.numerator === share.denominator)
    throw statement.error(
      'OFFSET requires a sampling ratio below 1.',
      offset,
      'For example SAMPLE 1/10 OFFSET 1/2.',
    );
  return { from: hashAt(offsetShare), to: hashAt(sumOf(offsetShare, share)) };
}

/** Exact, so that samples at adjacent offsets neither overlap nor leave a gap. */
interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const none: Fraction = { numerator: 0n, denominator: 1n };
const whole: Fraction = { numerator: 1n, denominator: 1n };

const sumOf = (one: Fraction, other: Fraction): Fraction => ({
  numerator: one.numerator * other.denominator + other.numerator * one.denominator,
  denominator: one.denominator * other.denominator,
});

/** The first hash after a share of all hashes. */
const hashAt = ({ numerator, denominator }: Fraction): bigint =>
  minHash + (hashCount * numerator) / denominator;

function fractionOf(statement: Statement, { numerator, denominator }: Ratio): Fraction {
  const dividend = decimalOf(statement, numerator);
  if (denominator === null) return dividend;
  const divisor = decimalOf(statement, denominator);
  if (divisor.numerator === 0n)
    throw statement.error('The denominator of a sampling ratio cannot be 0.', denominator);
  return {
    numerator: dividend.numerator * divisor.denominator,
    denominator: dividend.denominator * divisor.numerator,
  };
}

const decimal = /^(?<whole>\d*)\.?(?<fraction>\d*)(?:e(?<exponent>[+-]?\d{1,3}))?$/;

function decimalOf(statement: Statement, number: NumberLiteral): Fraction {
  const groups = decimal.exec(number.text)?.groups;
  if (groups === undefined)
    throw statement.error('A sampling ratio must be a decimal number.', number, 'For example 0.1 or 1/10.');
  const { whole = '', fraction = '', exponent = '0' } = groups;
  const digits = BigInt(whole + fraction);
  const scale = fraction.length - Number(exponent);
  return scale > 0
    ? { numerator: digits, denominator: 10n ** BigInt(scale) }
    : { numerator: digits * 10n ** BigInt(-scale), denominator: 1n };
}

/** A warehouse table that the project registered. */
class WarehouseRelation implements Relation {
  readonly name: string | null;
  readonly #table: WarehouseTable;
  readonly #relation: TeamRelation;

  constructor(statement: Statement, table: WarehouseTable, name: string | null) {
    this.name = name;
    this.#table = table;
    this.#relation = new TeamRelation(statement, table, name ?? 'warehouse', {
      teamColumn: table.teamColumn,
    });
  }

  readonly field: Relation['field'] = (name) => {
    const type = this.#table.columns.get(name);
    return type === undefined ? undefined : column(this.#relation.column(name), typeOfColumn(type, true));
  };

  readonly names = (): readonly string[] => [...this.#table.columns.keys()];
  /** Without the team column, as for the other tables. */
  readonly star = (): readonly string[] => this.names().filter((name) => name !== this.#table.teamColumn);
  readonly from = (): Sql => this.#relation.from();
}

const unavailableTableHint =
  'If the table was just added, an operator must run "exportd query setup". Else its relation was dropped from the source, or lacks the team column.';

export const tableNames = (statement: Statement): readonly string[] => [
  ...builtInTables,
  ...statement.project.schema.warehouse.keys(),
];

/** The relation of a table. @throws DialectError */
export function tableRelation(statement: Statement, table: Table): Relation {
  const path = table.path.map(({ text }) => text).join('.');
  const name = table.alias?.text ?? path;
  const { schema } = statement.project;
  const sample = tableNames(statement).includes(path) ? samplingCondition(statement, table) : null;
  switch (path) {
    case 'events':
      return new EventsRelation(statement, name, sample);
    case 'persons':
      return new PersonsRelation(statement, name, sample);
    case 'person_distinct_ids':
      return new PersonDistinctIdsRelation(statement, name, sample);
    case 'sessions':
      return new SessionsRelation(statement, name, { sample });
    case 'session_replay_events':
      if (schema.sessionReplayEvents !== null)
        return new SessionReplayEventsRelation(
          statement,
          schema.sessionReplayEvents,
          name,
          recordingFields,
          sample,
        );
      break;
    case 'groups':
      if (schema.groups !== null) return new GroupsRelation(statement, schema.groups, name);
      break;
    case 'raw_person_distinct_ids':
      return new StoredRelation(statement, schema.personDistinctIds, name, rawDistinctIdFields);
    case 'raw_session_replay_events':
      if (schema.sessionReplayEvents !== null)
        return new SessionReplayEventsRelation(
          statement,
          schema.sessionReplayEvents,
          name,
          rawRecordingFields,
        );
      break;
    case 'cohort_people':
    case 'static_cohort_people':
      if (schema.cohortPeople !== null)
        return new StoredRelation(
          statement,
          schema.cohortPeople,
          name,
          schema.cohortPeople.columns.has('cohort_name')
            ? { ...cohortFields, cohort_name: { column: 'cohort_name', kind: 'string', nullable: true } }
            : cohortFields,
        );
      break;
    case 'system.cohorts':
      if (schema.cohortPeople !== null) return new CohortsRelation(statement, schema.cohortPeople, name);
      break;
    case 'system.information_schema.tables':
    case 'system.information_schema.columns':
      return informationSchemaRelation(statement, path, name, () =>
        readableTables(new Statement(statement.project, statement.queryText)),
      );
  }
  const warehouse = schema.warehouse.get(path);
  if (warehouse !== undefined) {
    const { columns, teamColumn } = warehouse;
    if (columns.size === 0 || (teamColumn !== null && !columns.has(teamColumn)))
      throw statement.error(`The table \`${path}\` can no longer be read.`, table, unavailableTableHint);
    return new WarehouseRelation(statement, warehouse, name);
  }
  throw unknownTable(statement, table, path);
}

/** A table that queries of a project can read, with its columns as the compiler resolves them. */
interface ReadableTable {
  readonly name: string;
  readonly isWarehouse: boolean;
  readonly columns: readonly NamedColumn[];
}

/** The tables that queries of a project can read now. */
export const readableTables = (statement: Statement): readonly ReadableTable[] =>
  tableNames(statement).flatMap((name) => {
    const relation = readableRelation(statement, name);
    const isWarehouse = statement.project.schema.warehouse.has(name);
    return relation === null ? [] : [{ name, isWarehouse, columns: columnsOf(relation) }];
  });

/** Null for a table that the source lacks. */
function readableRelation(statement: Statement, name: string): Relation | null {
  try {
    return tableRelation(statement, tableNode(name));
  } catch (error) {
    if (error instanceof DialectError) return null;
    throw error;
  }
}

const span = { start: 0, end: 0 };

const tableNode = (name: string): Table => ({
  kind: 'table',
  path: name.split('.').map((text) => ({ kind: 'name', text, ...span })),
  alias: null,
  final: false,
  sample: null,
  ...span,
});

function unknownTable(statement: Statement, table: Table, path: string): Error {
  if (Object.hasOwn(unsupportedTables, path))
    return statement.error(`The table \`${path}\` is not supported.`, table, unsupportedTables[path] ?? null);
  const near = nearestName(path, tableNames(statement));
  const suggestion = near === null ? null : `Perhaps you meant \`${near}\`?`;
  return statement.error(`Unknown table \`${path}\`.`, table, suggestion);
}
