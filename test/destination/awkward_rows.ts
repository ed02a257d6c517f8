import type { Pool } from '../../src/journal/database.ts';

/** A row that readers tend to change. What is left out is ordinary. */
interface AwkwardRow {
  readonly name: string;
  readonly event?: string;
  readonly distinct_id?: string;
  readonly elements_chain?: string | null;
  readonly properties?: string | null;
  readonly person_properties?: string | null;
  /** Of `timestamp` and `created_at`. */
  readonly time?: string;
}

const long = 'x😀"\n,'.repeat(100_000);
const controls = Array.from({ length: 31 }, (_, code) => String.fromCharCode(code + 1)).join('');

/** Every value that a reader is known to change, with times that all formats have. */
export const awkwardRows: readonly AwkwardRow[] = [
  { name: 'plain', properties: '{"a": 1}', time: '2026-11-01 10:00:00.123456Z' },
  { name: 'empty', event: '', distinct_id: '', elements_chain: '', properties: '{}' },
  { name: 'null', elements_chain: null, properties: null, person_properties: null },
  {
    name: 'integers',
    properties: '{"n": 9007199254740993, "m": 12345678901234567890, "u": 18446744073709551616, "z": -0}',
  },
  {
    name: 'decimals',
    properties:
      '{"k": 123456789012345678901234567890123456789012.5, "p": 1.10, "t": 1e-300, "h": 1e400, "d": 0.12345678901234567890123}',
  },
  { name: 'JSON null', properties: 'null', person_properties: 'null' },
  { name: 'JSON text', properties: String.raw`"text \"q\" \\n"`, person_properties: '[1, "2", null]' },
  { name: 'JSON number', properties: ' 12345678901234567890.10 ', person_properties: 'true' },
  { name: 'case of keys', properties: '{"Key": 1, "key": 2, "KEY": 3, "": 4, "a.b": 5}' },
  { name: 'NUL', properties: String.raw`{"nul": "\u0000", "x\u0000y": "a\u0000b"}` },
  { name: 'nested', properties: `${'{"a": ['.repeat(200)}1${']}'.repeat(200)}` },
  { name: 'prototype', properties: '{"__proto__": {"polluted": true}, "constructor": 1}' },
  {
    name: 'quotes',
    event: '"',
    distinct_id: '""',
    elements_chain: 'a,b;"c"',
    properties: String.raw`{"q": "\"\"", "s": "'", "b": "\\", "e": "\\N"}`,
  },
  {
    name: 'line breaks',
    event: 'line\nbreaks\r\nof\rall kinds\n',
    distinct_id: ' leading',
    elements_chain: 'trailing\t',
    properties: '\r\n{\r\n\t"laid": "out",\n "in": [\n1,\r2] }\n',
    person_properties: ' [ ] ',
  },
  { name: 'words', event: 'NULL', distinct_id: String.raw`\N`, elements_chain: 'null' },
  { name: 'more words', event: 'NaN', distinct_id: 'None', elements_chain: 'Infinity' },
  { name: 'texts like numbers', event: '007', distinct_id: '1e5', elements_chain: 'true' },
  { name: 'texts like times', event: '2026-11-01', distinct_id: '2026-11-01T10:00:00Z' },
  {
    name: 'emoji',
    event: '😀 \u2028 é \ufeff',
    distinct_id: 'e\u0301',
    elements_chain: '\u200d👩\u200d👧',
    properties: String.raw`{"e": "😀", "escaped": "\ud83d\ude00"}`,
  },
  { name: 'controls', event: `${controls}\u007f\u0085` },
  { name: 'backslashes', event: String.raw`a\b`, distinct_id: '\\', elements_chain: String.raw`\"` },
  {
    name: 'backslash at the end',
    event: 'ends\\',
    distinct_id: String.raw`"\"`,
    elements_chain: String.raw`\.`,
  },
  { name: 'comment', event: '#comment', distinct_id: ';', elements_chain: "'" },
  { name: 'long', event: long, properties: JSON.stringify({ long }) },
  { name: 'year 1', time: '0001-01-01 00:00:00Z' },
  { name: 'year 1582', time: '1582-10-10 12:00:00.000001Z' },
  { name: 'year 1899', time: '1899-12-31 23:59:59.5Z' },
  { name: 'year 1969', time: '1969-12-31 23:59:59.999999Z' },
  { name: 'year 2300', time: '2300-01-01 00:00:00.000001Z' },
  { name: 'year 9999', time: '9999-12-31 23:59:59.999999Z' },
];

/** Times that no format has. */
export const refusedTimes = ['infinity', '-infinity', '0044-03-15 00:00:00Z BC', '10000-01-01 00:00:00Z'];

/** A relation of events whose JSON columns have the type `json`, which keeps numbers and escapes that jsonb refuses. */
export const createAwkwardEvents = (pool: Pool): Promise<unknown> =>
  pool.query(`
    create table public.awkward_rows (like public.events, name text);
    alter table public.awkward_rows alter properties type json, alter person_properties type json,
      alter elements_chain drop not null, alter properties drop not null;
    create view public.awkward_events as
      select team_id, uuid, event, distinct_id, person_id, properties, person_properties, elements_chain,
        timestamp, created_at, inserted_at from public.awkward_rows`);

/** Inserts rows into an hour, a second apart. */
export async function insertAwkwardRows(
  pool: Pool,
  teamId: number,
  hour: Date,
  rows: readonly AwkwardRow[],
): Promise<void> {
  for (const [index, row] of rows.entries())
    await pool.query(
      `insert into public.awkward_rows (team_id, name, uuid, event, distinct_id, elements_chain, properties, person_properties,
         person_id, timestamp, created_at, inserted_at)
       values ($1, $2, gen_random_uuid(), $3, $4, $5, $6, $7, $8, $9, $9, $10::timestamptz + make_interval(secs => $11))`,
      [
        teamId,
        row.name,
        row.event ?? 'event',
        row.distinct_id ?? 'd',
        row.elements_chain === undefined ? 'c' : row.elements_chain,
        row.properties === undefined ? '{}' : row.properties,
        row.person_properties === undefined ? '{}' : row.person_properties,
        index % 2 === 0 ? null : '01234567-89ab-cdef-0123-456789abcdef',
        row.time ?? '2026-11-01 10:00:00Z',
        hour,
        index,
      ],
    );
}
