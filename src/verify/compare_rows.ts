import { type ComparedColumn, compareKeys, type ComparedRow } from '../readers/row.ts';
import { maxSortableRows, OutOfOrder } from './ordered_rows.ts';
import type { ValueDigest } from '../readers/value_digest.ts';

/** A difference between a file and the source. */
export type Difference =
  | { readonly kind: 'missing' | 'duplicate' | 'unexpected'; readonly row: ComparedRow }
  | { readonly kind: 'mismatched'; readonly row: ComparedRow; readonly columns: readonly string[] };

/** How two rows are compared. */
interface CompareOptions {
  readonly columns: readonly ComparedColumn[];
  /** Whether the format writes the JSON value null like a missing value. */
  readonly jsonNullIsNull: boolean;
}

/**
 * Compares rows of files with those of the source. Both are sorted by key, so memory holds only the rows of one key
 * at a time. A key may occur several times on both sides.
 */
export async function* keyedDifferences(
  fileRows: AsyncIterable<ComparedRow>,
  sourceRows: AsyncIterable<ComparedRow>,
  options: CompareOptions,
): AsyncGenerator<Difference> {
  for await (const [inFile, inSource] of mergedGroups(fileRows, sourceRows))
    yield* compareGroups(inFile?.rows ?? [], inSource?.rows ?? [], options);
}

/** Yields the rows of `one` whose key is in `other`. Both are sorted by key. */
export async function* rowsInBoth(
  one: AsyncIterable<ComparedRow>,
  other: AsyncIterable<ComparedRow>,
): AsyncGenerator<ComparedRow> {
  for await (const [left, right] of mergedGroups(one, other)) if (left && right) yield left.first;
}

async function* mergedGroups(
  leftRows: AsyncIterable<ComparedRow>,
  rightRows: AsyncIterable<ComparedRow>,
): AsyncGenerator<readonly [Group | undefined, Group | undefined]> {
  const lefts = groupsOf(leftRows);
  const rights = groupsOf(rightRows);
  try {
    let left = await nextOf(lefts);
    let right = await nextOf(rights);
    while (left ?? right) {
      const order = !left ? 1 : !right ? -1 : compareKeys(left.first, right.first);
      yield [order <= 0 ? left : undefined, order >= 0 ? right : undefined];
      if (order <= 0) left = await nextOf(lefts);
      if (order >= 0) right = await nextOf(rights);
    }
  } finally {
    await Promise.all([lefts.return(undefined), rights.return(undefined)]);
  }
}

/** Rows with the same key. */
interface Group {
  readonly first: ComparedRow;
  readonly rows: readonly ComparedRow[];
}

async function* groupsOf(rows: AsyncIterable<ComparedRow>): AsyncGenerator<Group> {
  let group: { first: ComparedRow; rows: ComparedRow[] } | undefined;
  for await (const row of rows) {
    if (group && compareKeys(group.first, row) === 0) group.rows.push(row);
    else {
      if (group) yield group;
      group = { first: row, rows: [row] };
    }
  }
  if (group) yield group;
}

async function nextOf(groups: AsyncGenerator<Group>): Promise<Group | undefined> {
  const next = await groups.next();
  return next.done ? undefined : next.value;
}

function* compareGroups(
  files: readonly ComparedRow[],
  source: readonly ComparedRow[],
  options: CompareOptions,
): Generator<Difference> {
  for (const [file, row] of pairs(files, source)) {
    const columns = options.columns
      .filter((column, index) => !sameValue(file.values[index], row.values[index], column, options))
      .map(({ name }) => name);
    if (columns.length > 0) yield { kind: 'mismatched', row: file, columns };
  }
  for (const row of source.slice(files.length)) yield { kind: 'missing', row };
  for (const [index, row] of files.slice(source.length).entries())
    yield { kind: source.length + index > 0 ? 'duplicate' : 'unexpected', row };
}

/** Pairs rows with the same key. If there are several, rows with equal values are paired. */
function pairs(
  files: readonly ComparedRow[],
  source: readonly ComparedRow[],
): readonly (readonly [ComparedRow, ComparedRow])[] {
  const [file, row] = [files[0], source[0]];
  if (!file || !row) return [];
  if (files.length === 1 && source.length === 1) return [[file, row]];
  const [one, other] = [files, source].map((rows) => rows.toSorted(byValues)) as [
    ComparedRow[],
    ComparedRow[],
  ];
  return one.slice(0, other.length).map((left, index) => [left, other[index] ?? left]);
}

const byValues = (one: ComparedRow, other: ComparedRow): number =>
  JSON.stringify(one.values) < JSON.stringify(other.values) ? -1 : 1;

const sameValue = (
  file: ValueDigest | undefined,
  source: ValueDigest | undefined,
  column: ComparedColumn,
  options: CompareOptions,
): boolean => file === source || canonical(file, column, options) === canonical(source, column, options);

/** The values of a row, normalized where files and PostgreSQL format them differently. */
const canonicalValues = (
  values: ComparedRow['values'],
  options: CompareOptions,
): readonly (ValueDigest | undefined)[] =>
  options.columns.map((column, index) => canonical(values[index], column, options));

/** JSON lines contain null for the JSON value null. */
function canonical(
  value: ValueDigest | undefined,
  { type }: ComparedColumn,
  { jsonNullIsNull }: CompareOptions,
): ValueDigest | undefined {
  if (value === null || value === undefined) return value;
  if (type === 'json') return jsonNullIsNull && value === 'null' ? null : value;
  if (type !== 'double') return value;
  return String(Number(value));
}

/**
 * Compares rows of files without keys with those of the source, by their values. Both are in the same order, so rows
 * with equal values soon cancel out. What remains at the end exists on one side only.
 * @throws OutOfOrder when too many rows would have to be kept
 */
export async function* unkeyedDifferences(
  fileRows: AsyncGenerator<ComparedRow>,
  sourceRows: AsyncGenerator<ComparedRow>,
  options: CompareOptions,
): AsyncGenerator<Difference> {
  const unmatched = new Map<string, { kind: 'missing' | 'unexpected'; rows: ComparedRow[] }>();
  const add = (kind: 'missing' | 'unexpected', row: ComparedRow): void => {
    const values = JSON.stringify(canonicalValues(row.values, options));
    const matching = unmatched.get(values);
    if (!matching) unmatched.set(values, { kind, rows: [row] });
    else if (matching.kind === kind) matching.rows.push(row);
    else {
      matching.rows.shift();
      if (matching.rows.length === 0) unmatched.delete(values);
    }
    if (unmatched.size > maxSortableRows) throw new OutOfOrder('Too many rows differ to be compared.');
  };
  try {
    for (let number = 1; ; number += 1) {
      const [file, source] = [await fileRows.next(), await sourceRows.next()];
      if (!file.done) add('unexpected', { ...file.value, id: `row ${number} of its files` });
      // Rows with equal values cannot be told apart, so their times tell nothing. Without values no row can.
      if (!source.done)
        add('missing', {
          ...source.value,
          inserted_at: '',
          ...(options.columns.length === 0 && { id: '(any)' }),
        });
      if (file.done && source.done) break;
    }
  } finally {
    await Promise.all([fileRows.return(undefined), sourceRows.return(undefined)]);
  }
  for (const { kind, rows } of unmatched.values()) for (const row of rows) yield { kind, row };
}
