import type { Project } from '../../resolve/statement.ts';
import type { SourceRelation } from '../../schema.ts';
import type { Pool } from 'pg';
import { project } from '../project.ts';
import type { Random } from './generator/random.ts';
import { parseDatetime } from './reference/times.ts';
import type { ReferenceTable } from './reference/scope.ts';
import { type ReferenceKind, type ReferenceType, typeOf } from './reference/types.ts';
import type { Value } from './reference/values.ts';

/** The rows of each table. */
export type Data = ReadonlyMap<string, readonly ReadonlyMap<string, Value>[]>;

const nullable = (kind: ReferenceKind): ReferenceType => typeOf(kind, true);

const warehouseColumns = new Map<string, ReferenceType>([
  ['id', nullable('integer')],
  ['k', nullable('string')],
  ['i', nullable('integer')],
  ['f', nullable('float')],
  ['n', nullable('decimal')],
  ['s', nullable('string')],
  ['b', nullable('boolean')],
  ['d', nullable('date')],
  ['t', nullable('datetime')],
  ['u', nullable('uuid')],
]);

const eventColumns = new Map<string, ReferenceType>([
  ['uuid', typeOf('uuid')],
  ['event', typeOf('string')],
  ['distinct_id', typeOf('string')],
  ['timestamp', typeOf('datetime')],
  ['properties.plan', nullable('string')],
  ['properties.amount', nullable('float')],
  ['properties.paid', nullable('boolean')],
  ['properties.trial_ends', nullable('datetime')],
]);

/** The columns of each table that the reference interpreter knows. */
export const tableColumns: ReadonlyMap<string, ReadonlyMap<string, ReferenceType>> = new Map([
  ['left_rows', warehouseColumns],
  ['right_rows', warehouseColumns],
  ['events', eventColumns],
]);

const warehouseTypes: ReadonlyMap<string, string> = new Map([
  ['team_id', 'integer'],
  ['id', 'bigint'],
  ['k', 'text'],
  ['i', 'bigint'],
  ['f', 'double precision'],
  ['n', 'numeric'],
  ['s', 'text'],
  ['b', 'boolean'],
  ['d', 'date'],
  ['t', 'timestamp with time zone'],
  ['u', 'uuid'],
]);

const eventTypes: ReadonlyMap<string, string> = new Map([
  ['team_id', 'integer'],
  ['uuid', 'uuid'],
  ['event', 'text'],
  ['distinct_id', 'text'],
  ['timestamp', 'timestamp with time zone'],
  ['properties', 'jsonb'],
]);

const postgresTables: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map([
  ['left_rows', warehouseTypes],
  ['right_rows', warehouseTypes],
  ['events', eventTypes],
]);

const relationOf = (name: string): SourceRelation => ({
  relation: `"differential"."${name}"`,
  columns: postgresTables.get(name) ?? new Map(),
});

const warehouse = (name: string) => [name, { ...relationOf(name), teamColumn: 'team_id' }] as const;

/** A project that reads the rows of one data set. */
export const projectOf = (dataSet: number, timezone: string): Project => ({
  ...project,
  teamId: dataSet,
  timezone,
  schema: {
    ...project.schema,
    events: relationOf('events'),
    warehouse: new Map([warehouse('left_rows'), warehouse('right_rows')]),
  },
});

export async function createTables(pool: Pool): Promise<void> {
  const tables = [...postgresTables].map(
    ([name, columns]) =>
      `create table differential.${name} (${[...columns].map(([column, type]) => `${column} ${type}`).join(', ')});`,
  );
  await pool.query(`create schema differential; ${tables.join(' ')}`);
}

/** Stores a data set under a number. */
export async function insertData(pool: Pool, data: Data, dataSet: number): Promise<void> {
  for (const [table, columns] of postgresTables) {
    const rows = (data.get(table) ?? []).map((row) => ({ team_id: dataSet, ...storedRow(table, row) }));
    const definition = [...columns].map(([column, type]) => `${column} ${type}`).join(', ');
    await pool.query(
      `insert into differential.${table} select * from jsonb_to_recordset($1::jsonb) as row (${definition})`,
      [JSON.stringify(rows)],
    );
  }
}

function storedRow(table: string, row: ReadonlyMap<string, Value>): Record<string, unknown> {
  const stored: Record<string, unknown> = {};
  const properties: Record<string, unknown> = {};
  for (const [name, value] of row) {
    const kind = tableColumns.get(table)?.get(name)?.kind ?? 'null';
    if (name.startsWith('properties.')) properties[name.slice('properties.'.length)] = jsonValue(value, kind);
    else stored[name] = jsonValue(value, kind);
  }
  return table === 'events' ? { ...stored, properties } : stored;
}

function jsonValue(value: Value, kind: ReferenceKind): string | number | boolean | null {
  if (typeof value === 'bigint')
    return kind === 'datetime'
      ? `${new Date(Number(value / 1_000_000n) * 1000).toISOString().slice(0, 19)}.${String(value % 1_000_000n).padStart(6, '0')}Z`
      : String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  return value as string | boolean | null;
}

export const tablesOf = (data: Data): ReadonlyMap<string, ReferenceTable> =>
  new Map([...tableColumns].map(([name, columns]) => [name, { columns, rows: data.get(name) ?? [] }]));

/** Strings of the rows, which literals of queries use too. */
export const strings: readonly string[] = [
  '',
  'a',
  'b',
  'A',
  'ab',
  'abc',
  'é',
  '😀',
  ' a ',
  '%',
  '_',
  'x\\y',
  "a'b",
  '1',
  '2.5',
  '-7',
  'true',
  '2026-03-29',
  '2026-10-25 02:30:00',
  'nan',
  'a,b,c',
  '\u{fffd}',
  'Zz',
];
export const dates: readonly string[] = [
  '2026-03-29',
  '2026-10-25',
  '2024-02-29',
  '2026-01-31',
  '2025-12-31',
  '1970-01-01',
  '1969-12-31',
];
/** Local times of UTC, some around the clock changes of Berlin. */
const times: readonly string[] = [
  '2026-03-29 00:30:00',
  '2026-03-29 01:00:00',
  '2026-03-28 23:00:00',
  '2026-10-25 00:30:00',
  '2026-10-25 01:30:00',
  '2026-10-24 22:00:00',
  '2026-06-15 12:34:56.789012',
  '2025-12-31 23:59:59.999999',
  '2024-02-29 12:00:00',
  '1970-01-01 00:00:00',
];
/** Times, in UTC, at which clocks change in Berlin, New York, the Azores and on Lord Howe Island. */
const clockChanges: readonly string[] = [
  '2026-03-29T01:00:00Z',
  '2026-10-25T01:00:00Z',
  '2026-03-08T07:00:00Z',
  '2026-11-01T06:00:00Z',
  '2026-04-04T15:00:00Z',
  '2026-10-03T15:30:00Z',
];
/** One of `times`, or a time within three hours of a clock change, also some days earlier or later. */
export function randomTime(random: Random): string {
  if (!random.oneIn(3)) return random.one(times);
  const days = random.one([-31, -30, -7, -1, 0, 0, 0, 1, 7, 30, 31]);
  const minutes = (random.below(25) - 12) * 15 + days * 1_440;
  const moment = Date.parse(random.one(clockChanges)) + minutes * 60_000;
  return new Date(moment).toISOString().slice(0, 19).replace('T', ' ');
}
export const integers: readonly bigint[] = [-100n, -3n, -2n, -1n, 0n, 0n, 1n, 1n, 2n, 3n, 4n, 7n, 100n];
/** Sums of these are exact, so that their order does not matter. */
export const floats: readonly number[] = [0, 0.25, 0.5, 1, 1.5, 2, 2.5, -0.5, -2.25, 10, 100.75];
const extremes: readonly number[] = [NaN, Infinity, -Infinity];
const decimals: readonly number[] = [0, 1, 1.5, 2.25, -3.75, 10];
export const uuids: readonly string[] = [1, 2, 3].map(
  (digit) => `0000000${digit}-0000-4000-8000-00000000000${digit}`,
);

/** Random rows with nulls, repeated keys, NaN and times at clock changes. */
export function randomData(random: Random): Data {
  const hasExtremes = random.oneIn(4);
  const value = (kind: ReferenceKind): Value => {
    switch (kind) {
      case 'integer':
        return random.one(integers);
      case 'float':
        return hasExtremes && random.oneIn(4) ? random.one(extremes) : random.one(floats);
      case 'decimal':
        return random.one(decimals);
      case 'string':
        return random.one(strings);
      case 'boolean':
        return random.oneIn(2);
      case 'date':
        return random.one(dates);
      case 'datetime':
        return parseDatetime(randomTime(random), 'UTC') ?? null;
      case 'uuid':
        return random.one(uuids);
      default:
        return null;
    }
  };
  return new Map(
    [...tableColumns].map(([table, columns]) => [
      table,
      Array.from(
        { length: random.oneIn(8) ? 0 : 1 + random.below(7) },
        (_, index) =>
          new Map<string, Value>(
            [...columns].map(([name, type]) => {
              if (name === 'id') return [name, BigInt(index + 1)];
              if (name === 'k') return [name, random.one(['a', 'b', 'c', null])];
              if (name === 'uuid') return [name, `10000000-0000-4000-8000-00000000000${index}`];
              if (name === 'event') return [name, random.one(['signup', 'purchase', '$pageview'])];
              const found = type.nullable && random.oneIn(4) ? null : value(type.kind);
              const isNotJson =
                name.startsWith('properties.') && typeof found === 'number' && !Number.isFinite(found);
              return [name, isNotJson ? 0 : found];
            }),
          ),
      ),
    ]),
  );
}
