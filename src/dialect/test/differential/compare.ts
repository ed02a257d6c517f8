import type { CompiledStatement } from '../../compile/compile_query.ts';
import type { Type } from '../../types.ts';
import type { ReferenceResult } from './reference/queries.ts';
import { itemOf, type ReferenceType } from './reference/types.ts';
import { identityOf, type Value } from './reference/values.ts';

/** The rows of PostgreSQL, with values as text. */
export type TextRows = readonly (readonly (string | null)[])[];

/** Says how the rows of PostgreSQL differ from those of the reference interpreter; undefined if they agree. */
export function differenceOf(
  statement: CompiledStatement,
  found: TextRows,
  expected: ReferenceResult,
): string | undefined {
  if (statement.columns.length !== expected.columns.length)
    return `${statement.columns.length} columns, expected ${expected.columns.length}`;
  for (const [index, column] of statement.columns.entries()) {
    const wanted = expected.columns[index]?.type;
    if (wanted !== undefined && !isSameKind(column.type, wanted))
      return `column ${index + 1} has the type ${column.typeName}, expected ${describeType(wanted)}`;
    if (!column.type.nullable && found.some((row) => row[index] === null))
      return `column ${index + 1} of type ${column.typeName} is null`;
  }
  const types = expected.columns.map(({ type }) => type);
  const rows = found.map((row) =>
    row.map((text, index) => readText(text, types[index] ?? { kind: 'null', nullable: true })),
  );
  const whole = `found ${show(rows)}, expected ${show(expected.rows)}`;
  if (rows.length !== expected.rows.length) return whole;
  for (const [from, to] of segments(expected.ties))
    if (!isSameSet(rows.slice(from, to), expected.rows.slice(from, to))) return whole;
  return undefined;
}

const describeType = ({ kind, item }: ReferenceType): string =>
  item === undefined ? kind : `${kind}(${describeType(item)})`;

function isSameKind(found: Type, wanted: ReferenceType): boolean {
  if (found.kind === 'null' || wanted.kind === 'null') return true;
  if (found.kind === 'array') return wanted.kind === 'array' && isSameKind(found.item, itemOf(wanted));
  return found.kind === wanted.kind;
}

/** The bounds of rows that ORDER BY does not tell apart. */
function segments(ties: readonly boolean[]): readonly (readonly [number, number])[] {
  const starts = ties.flatMap((isTie, index) => (index === 0 || !isTie ? [index] : []));
  return starts.map((start, index) => [start, starts[index + 1] ?? ties.length]);
}

function isSameSet(found: readonly (readonly Value[])[], expected: readonly (readonly Value[])[]): boolean {
  const rest = [...expected];
  for (const row of found) {
    const index = rest.findIndex((other) => isClose(row, other));
    if (index < 0) return false;
    rest.splice(index, 1);
  }
  return true;
}

/** Floats may differ in their last digits. */
function isClose(a: Value, b: Value): boolean {
  if (typeof a === 'number' && typeof b === 'number') {
    if (!Number.isFinite(a) || !Number.isFinite(b)) return Object.is(a, b);
    return Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b), 1e-3);
  }
  if (Array.isArray(a) && Array.isArray(b))
    return (
      a.length === b.length &&
      a.every((item: Value, index) => isClose(item, (b as readonly Value[])[index] ?? null))
    );
  return identityOf(a) === identityOf(b);
}

function readText(text: string | null, type: ReferenceType): Value {
  if (text === null) return null;
  switch (type.kind) {
    case 'integer':
      return BigInt(text);
    case 'float':
    case 'decimal':
      return Number(text);
    case 'boolean':
      return text === 't';
    case 'datetime':
      return readMoment(text);
    case 'array':
      return (JSON.parse(text) as readonly unknown[]).map((item) => readJson(item, itemOf(type)));
    default:
      return text;
  }
}

/** Reads `2026-03-29 00:30:00.5+00`. */
function readMoment(text: string): Value {
  const match = /^(.{10}) (.{8})(?:\.(\d+))?\+00$/.exec(text);
  if (match === null) return text;
  const seconds = BigInt(Date.parse(`${match[1] ?? ''}T${match[2] ?? ''}Z`) / 1000);
  return seconds * 1_000_000n + BigInt((match[3] ?? '').padEnd(6, '0'));
}

function readJson(value: unknown, type: ReferenceType): Value {
  if (value === null) return null;
  if (type.kind === 'integer') return BigInt(value as number);
  if (type.kind === 'float') return Number(value);
  return value as Value;
}

const show = (rows: readonly (readonly Value[])[]): string =>
  JSON.stringify(rows, (_, value: unknown) =>
    typeof value === 'bigint'
      ? `${value}`
      : typeof value === 'number' && !Number.isFinite(value)
        ? String(value)
        : value,
  );
