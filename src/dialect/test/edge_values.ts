import type { Project } from '../resolve/statement.ts';
import type { Pool } from 'pg';
import { project, schema } from './project.ts';

const columns = {
  id: 'bigint',
  i: 'bigint',
  f: 'double precision',
  n: 'numeric',
  s: 'text',
  b: 'boolean',
  d: 'date',
  t: 'timestamp with time zone',
  u: 'uuid',
  j: 'jsonb',
};

/** A project with the table `edge_values`, whose values are at the limits of their types. */
export const edgeValueProject: Project = {
  ...project,
  schema: {
    ...schema,
    warehouse: new Map([
      ...schema.warehouse,
      [
        'edge_values',
        { relation: '"public"."edge_values"', columns: new Map(Object.entries(columns)), teamColumn: null },
      ],
    ]),
  },
};

type Row = readonly [
  i: string | null,
  f: string | null,
  n: string | null,
  s: string | null,
  b: boolean | null,
  d: string | null,
  t: string | null,
  j: string | null,
];

const rows: readonly Row[] = [
  ['0', '0', '0', '', true, '2026-11-21', '2026-11-21T12:00:00Z', '{}'],
  ['1', '1.5', '1.5', 'a', false, '2024-02-29', '2026-03-08T07:00:00Z', '{"a": 1, "b": "x"}'],
  ['-1', '-1.5', '-1', '(', null, '0001-01-01', '0001-01-01T00:00:00Z', '[1, 2, {"a": null}]'],
  [
    '9223372036854775807',
    '1.7e308',
    '1e400',
    '2026-02-30',
    true,
    '9999-12-31',
    '9999-12-31T23:59:59Z',
    '"a"',
  ],
  [
    '-9223372036854775808',
    '-1.7e308',
    '-1e400',
    '1e400',
    false,
    '5874897-12-31',
    '294276-12-31T00:00:00Z',
    '1e500',
  ],
  ['2147483648', '1e-300', '1e-400', '[a-', true, '4713-01-01 BC', '4713-01-02 BC', 'null'],
  [
    '64',
    'NaN',
    'NaN',
    'https://ex.com:99999999999/%zz?a=%#é',
    true,
    'infinity',
    'infinity',
    '{"a": {"b": [1.5]}}',
  ],
  [
    '1000000',
    'Infinity',
    'Infinity',
    '9223372036854775808',
    false,
    '-infinity',
    '-infinity',
    '{"a": "2026-13-45"}',
  ],
  ['-2147483649', '-Infinity', '-Infinity', '\\', null, '1970-01-01', '1970-01-01T00:00:00Z', 'true'],
  [
    '3',
    '0.1',
    '0.1',
    '{"a": [1, "\\u0000"]}',
    true,
    '1582-10-15',
    '1883-11-18T17:00:00Z',
    '"\\ud83d\\ude00"',
  ],
  [null, null, null, null, null, null, null, null],
  ['1609459200', '-0', '123456789.123456789', 'é😀 ٣ %', false, '2026-11-01', '2026-11-01T05:30:00Z', '[]'],
  [
    '60',
    '1e18',
    '9223372036854775808',
    '0x10',
    true,
    '2026-12-31',
    '2026-12-31T23:59:59.999999Z',
    '{"a": []}',
  ],
];

export async function insertEdgeValues(pool: Pool): Promise<void> {
  const declared = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
  await pool.query(`create table edge_values (${declared.join(', ')})`);
  for (const [index, [i, f, n, s, b, d, t, j]] of rows.entries())
    await pool.query(`insert into edge_values values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, [
      index,
      i,
      f,
      n,
      s,
      b,
      d,
      t,
      `00000000-0000-0000-0000-0000000000${10 + index}`,
      j,
    ]);
}
