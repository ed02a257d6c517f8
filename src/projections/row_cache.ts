import type { Connection } from '../journal/database.ts';
import type { PendingWrite, PlannedFold, ReadRow } from '../journal/journal.ts';
import { entryOf, statementOf } from './row_writes.ts';

/** A row by column, as PostgreSQL writes it as JSON. */
type AnyRow = Readonly<Record<string, unknown>>;

/** Rows that a fold reads together, such as those of an interval: they have equal values in these columns. */
interface Lookup<Row> {
  readonly columns: readonly string[];
  /** Takes one more value, of this column. A cache finds such rows among those with equal `columns`. */
  readonly also?: string;
  /** Takes two more values, the bounds of a range. Only rows belong to it whose own ranges touch that. */
  readonly range?: { readonly starts: string; readonly ends: string };
  /** Only these rows belong to it. In SQL, `stored` is the row. */
  readonly where?: { readonly sql: string; holds(row: Row): boolean };
  /** Whether few of the rows with equal `columns` belong to it, so that a cache keeps those apart. */
  readonly isSelective?: boolean;
}

/** A table whose rows a fold reads and changes in memory. */
export interface CachedTable<Row extends object = object> {
  /** Qualified with the schema. */
  readonly name: string;
  /** The columns of its primary key. A fold gives each new row all columns of the table. */
  readonly key: readonly string[];
  readonly lookups: Readonly<Record<string, Lookup<Row>>>;
}

/** Rows that a fold reads: those of a lookup, or by the key with `byKey`. */
export interface WantedRows {
  readonly table: CachedTable;
  readonly lookup: string;
  readonly values: readonly unknown[];
  /** Whether no such row can be stored yet, because the event creates it. */
  readonly isNew?: boolean;
  /** Whether the fold does not change them: those of another read model. */
  readonly isOnlyRead?: boolean;
  /** Whether the fold only calls `assign`, so that an append need not read the row. */
  readonly isAssigned?: boolean;
}

/** Rows that another statement reads for a cache. */
interface PlannedFetch {
  readonly reads: NonNullable<PlannedFold['reads']>;
  /** Takes them. */
  accept(rows: readonly ReadRow[]): void;
}

/** Rows of read models in memory. A fold finds only rows that were fetched before. `takeChanges` returns what is to be written. */
export interface RowCache {
  /**
   * Reads rows that the next events need, with one statement.
   * @param options.locks for an append: they stay locked until the end of its transaction, so that nothing else changes them.
   *   Rows that are only assigned are not read
   */
  prefetch(wanted: readonly WantedRows[], options?: { readonly locks: boolean }): Promise<void>;
  /** What `prefetch` reads, to be read with another statement; undefined for nothing. */
  planFetch(wanted: readonly WantedRows[], options: { readonly locks: boolean }): PlannedFetch | undefined;
  /** The row with this key; undefined if there is none. @throws RangeError when it was not fetched */
  get<Row extends object>(table: CachedTable<Row>, ...key: readonly unknown[]): Row | undefined;
  /** @throws RangeError when they were not fetched */
  find<Row extends object>(
    table: CachedTable<Row>,
    lookup: string,
    ...values: readonly unknown[]
  ): readonly Row[];
  /** Inserts a row, or replaces a fetched one with the same key. */
  set<Row extends object>(table: CachedTable<Row>, row: Row): void;
  /** Changes columns of a row, also of its key. */
  change<Row extends object>(table: CachedTable<Row>, row: Row, changes: Partial<Row>): void;
  /** Sets columns of the row with this key, whatever they were; nothing without such a row. It need not be fetched. */
  assign<Row extends object>(table: CachedTable<Row>, key: readonly unknown[], changes: Partial<Row>): void;
  delete<Row extends object>(table: CachedTable<Row>, row: Row): void;
  /** Deletes the rows with any of these values in the only column of a lookup, which need not be fetched and never come back. */
  deleteAll(table: CachedTable, lookup: string, values: readonly unknown[]): void;
  /** What has changed since it was last called, in the given order of tables. It may be written while others change. */
  takeChanges(tables: readonly CachedTable[]): Iterable<PendingWrite>;
  /** Reads with another connection from here on. */
  readWith(connection: Connection): void;
  readonly size: number;
}

/** The name of the lookup by the primary key. */
export const byKey = 'key';

/** Rows that one statement writes. */
const rowsPerStatement = 5_000;

/** A time as the journal and PostgreSQL write it, in different forms: `2026-11-01T…`. */
const isTime = (text: string): boolean => text[10] === 'T' && text[4] === '-' && text[7] === '-';
const keyPart = (value: unknown): string =>
  typeof value === 'string' && isTime(value) ? keyOfTime(value) : String(value);

/** Parsed times: the intervals of most exports begin and end together. */
const knownTimes = new Map<string, string>();
const maxKnownTimes = 10_000;
function keyOfTime(text: string): string {
  const known = knownTimes.get(text);
  if (known !== undefined) return known;
  if (knownTimes.size >= maxKnownTimes) knownTimes.clear();
  const key = String(Date.parse(text));
  knownTimes.set(text, key);
  return key;
}
const keyOf = (values: readonly unknown[]): string =>
  values.length === 1 ? keyPart(values[0]) : values.map(keyPart).join('/');

const valuesOf = (row: AnyRow, columns: readonly string[]): readonly unknown[] =>
  columns.map((column) => row[column]);

interface CachedRow {
  /** Undefined once it is deleted. */
  readonly row: AnyRow | undefined;
  /** As it is stored, once what was taken is written; undefined if it is not. */
  readonly stored: AnyRow | undefined;
}

/** How rows of a table are found by the values of some columns. */
interface RowIndex {
  readonly name: string;
  readonly columns: readonly string[];
  readonly holds: ((row: AnyRow) => boolean) | undefined;
}

interface IndexedLookup {
  readonly lookup: Lookup<object>;
  readonly index: RowIndex;
  /** Whether it has all rows of its index, so that these are in memory with its own. */
  readonly isWhole: boolean;
}

/** What is known of a table without its rows. */
interface TableShape {
  readonly indexes: readonly RowIndex[];
  readonly lookups: ReadonlyMap<string, IndexedLookup>;
}

const shapes = new WeakMap<CachedTable, TableShape>();

function shapeOf(table: CachedTable): TableShape {
  const known = shapes.get(table);
  if (known) return known;
  const indexes = new Map<string, RowIndex>();
  const lookups = new Map<string, IndexedLookup>();
  // Rows are found by their key without an index.
  const keyIndex = { name: byKey, columns: table.key, holds: undefined };
  lookups.set(byKey, { lookup: { columns: table.key }, index: keyIndex, isWhole: true });
  for (const [name, lookup] of Object.entries(table.lookups)) {
    const { columns, also, range, where, isSelective = false } = lookup;
    const id = isSelective ? name : `by ${columns.join('/')}`;
    const holds = isSelective && where ? (row: AnyRow) => where.holds(row) : undefined;
    const index = indexes.get(id) ?? { name: id, columns, holds };
    indexes.set(id, index);
    const isWhole = also === undefined && range === undefined && (where === undefined || isSelective);
    lookups.set(name, { lookup, index, isWhole });
  }
  const shape = { indexes: [...indexes.values()], lookups };
  shapes.set(table, shape);
  return shape;
}

interface LoadedTable {
  readonly shape: TableShape;
  readonly rows: Map<string, CachedRow>;
  readonly changed: Set<string>;
  /** By index and values: the keys of rows. */
  readonly found: Map<RowIndex, Map<string, Set<string>>>;
  /** By the name of a lookup or index: the values of which all rows are in memory. */
  readonly complete: Map<string, Set<string>>;
  /** By lookup: values of rows that `deleteAll` has deleted. Most appends have none, nor the next two. */
  gone?: Map<IndexedLookup, Set<string>>;
  /** By key: columns to set of rows that are not in memory, with those of the key. */
  assigned?: Map<string, AnyRow>;
  /** Deletes that are still to be written. */
  deletes?: Map<IndexedLookup, unknown[]>;
}

/** Whether a row with equal columns belongs to a lookup. */
function belongsTo(
  { columns, also, range, where }: Lookup<object>,
  row: AnyRow,
  values: readonly unknown[],
): boolean {
  if (where && !where.holds(row)) return false;
  const more = values.slice(columns.length);
  if (also !== undefined && row[also] !== more[0]) return false;
  if (!range) return true;
  const [from, to] = more.map((bound) => Date.parse(String(bound)));
  return (
    Date.parse(String(row[range.starts])) <= (to ?? Number.NaN) &&
    Date.parse(String(row[range.ends])) >= (from ?? Number.NaN)
  );
}

/**
 * Creates a cache over tables. What it has read must be locked, or nothing else may write them. It reads with `reader`, which need
 * not see what was taken from the cache and is not yet committed: rows in memory are newer than stored ones.
 */
export function createRowCache(reader: Connection): RowCache {
  let connection = reader;
  const loaded = new Map<CachedTable, LoadedTable>();

  const open = (table: CachedTable): LoadedTable =>
    entryOf(loaded, table, () => ({
      shape: shapeOf(table),
      rows: new Map(),
      changed: new Set(),
      found: new Map(),
      complete: new Map(),
    }));
  const lookupOf = (table: CachedTable, name: string): IndexedLookup => {
    const lookup = shapeOf(table).lookups.get(name);
    if (!lookup) throw new RangeError(`${table.name} has no lookup "${name}".`);
    return lookup;
  };
  const isComplete = (table: CachedTable, name: string, values: readonly unknown[]): boolean => {
    const { lookup, index, isWhole } = lookupOf(table, name);
    const { complete } = open(table);
    const { length } = lookup.columns;
    const whole = values.length === length ? values : values.slice(0, length);
    if (complete.get(index.name)?.has(keyOf(whole))) return true;
    return !isWhole && complete.get(name)?.has(keyOf(values)) === true;
  };
  /** Remembers that all rows of a lookup are in memory. */
  const setComplete = (table: CachedTable, name: string, key: string): void => {
    const { index, isWhole } = lookupOf(table, name);
    entryOf(open(table).complete, isWhole ? index.name : name, () => new Set()).add(key);
  };
  const requireComplete = (table: CachedTable, name: string, values: readonly unknown[]): void => {
    if (!isComplete(table, name, values))
      throw new RangeError(
        `The fold of ${table.name} reads "${name}" of ${keyOf(values)}, and did not want it.`,
      );
  };

  /** Puts a row into memory, in place of the one with its key. */
  const put = ({ shape, rows, found }: LoadedTable, key: string, after: CachedRow): void => {
    const former = rows.get(key)?.row;
    const { row } = after;
    for (const index of shape.indexes) {
      const { columns, holds } = index;
      const value = (some: AnyRow | undefined) =>
        some !== undefined && (holds?.(some) ?? true) ? keyOf(valuesOf(some, columns)) : undefined;
      // Most changes are of other columns.
      if (former && row && !holds && columns.every((column) => former[column] === row[column])) continue;
      const [before, now] = [value(former), value(row)];
      if (before === now) continue;
      const keys = entryOf(found, index, () => new Map<string, Set<string>>());
      if (before !== undefined) keys.get(before)?.delete(key);
      if (now !== undefined) entryOf(keys, now, () => new Set()).add(key);
    }
    rows.set(key, after);
  };
  const putChanged = (table: CachedTable, last: AnyRow, row: AnyRow | undefined): void => {
    const opened = open(table);
    const key = keyOf(valuesOf(last, table.key));
    put(opened, key, { row, stored: opened.rows.get(key)?.stored });
    opened.changed.add(key);
  };
  const isGone = ({ gone }: LoadedTable, row: AnyRow): boolean =>
    gone !== undefined &&
    [...gone].some(
      ([{ lookup }, values]) =>
        (lookup.where?.holds(row) ?? true) && values.has(keyOf(valuesOf(row, lookup.columns))),
    );

  const planFetch: RowCache['planFetch'] = (wanted, { locks }) => {
    const missing = new Map<IndexedLookup, MissingRows>();
    for (const { table, lookup: name, values, isNew, isOnlyRead = false, isAssigned = false } of wanted) {
      if ((locks && isAssigned) || isComplete(table, name, values)) continue;
      const key = keyOf(values);
      if (isNew) {
        setComplete(table, name, key);
        continue;
      }
      const indexed = lookupOf(table, name);
      const { lookup } = indexed;
      const isLocked = locks && !isOnlyRead;
      entryOf(missing, indexed, () => ({
        table,
        name,
        lookup,
        isLocked,
        values: new Map<string, readonly unknown[]>(),
      })).values.set(key, values);
    }
    if (missing.size === 0) return undefined;
    const sources = [...missing.values()];
    return {
      reads: readsOf(sources),
      accept: (rows) => {
        for (const { source, row } of rows) {
          const table = sources[source]?.table;
          if (!table) continue;
          const opened = open(table);
          const key = keyOf(valuesOf(row, table.key));
          // What is in memory may have changed since.
          if (!opened.rows.has(key) && !isGone(opened, row)) put(opened, key, { row, stored: row });
        }
        for (const { table, name, values: fetched } of sources)
          for (const key of fetched.keys()) setComplete(table, name, key);
      },
    };
  };

  const cache: RowCache = {
    planFetch,
    prefetch: async (wanted, options = { locks: false }) => {
      const planned = planFetch(wanted, options);
      if (!planned) return;
      const { words = [], names, text, values } = planned.reads;
      const statement = statementOf(
        ['select', ...words],
        () => `with ${text(1)} ${names.map((name) => `select * from ${name}`).join(' union all ')}`,
      );
      planned.accept((await connection.query<ReadRow>(statement, [...values])).rows);
    },
    get: <Row extends object>(table: CachedTable<Row>, ...values: readonly unknown[]) => {
      const cached = open(table).rows.get(keyOf(values));
      if (!cached) requireComplete(table, byKey, values);
      return cached?.row as Row | undefined;
    },
    find: <Row extends object>(table: CachedTable<Row>, name: string, ...values: readonly unknown[]) => {
      requireComplete(table, name, values);
      const { lookup, index } = lookupOf(table, name);
      const { rows, found } = open(table);
      const keys = found.get(index)?.get(keyOf(values.slice(0, lookup.columns.length)));
      return [...(keys ?? [])].flatMap((key) => {
        const row = rows.get(key)?.row;
        return row && belongsTo(lookup, row, values) ? [row as Row] : [];
      });
    },
    set: (table, row) => putChanged(table, row as AnyRow, row as AnyRow),
    change: (table, row, changes) => {
      const [before, after] = [row as AnyRow, { ...row, ...changes } as AnyRow];
      if (table.key.some((column) => keyPart(before[column]) !== keyPart(after[column])))
        putChanged(table, before, undefined);
      putChanged(table, after, after);
    },
    assign: (table, values, changes) => {
      const opened = open(table);
      const { rows } = opened;
      const key = keyOf(values);
      const row = rows.get(key)?.row;
      if (row) putChanged(table, row, { ...row, ...changes });
      else if (!rows.has(key) && !isComplete(table, byKey, values))
        (opened.assigned ??= new Map()).set(key, {
          ...Object.fromEntries(table.key.map((column, index) => [column, values[index]])),
          ...opened.assigned.get(key),
          ...changes,
        });
    },
    delete: (table, row) => putChanged(table, row as AnyRow, undefined),
    deleteAll: (table, name, values) => {
      if (values.length === 0) return;
      const indexed = lookupOf(table, name);
      const opened = open(table);
      entryOf((opened.deletes ??= new Map()), indexed, () => []).push(...values);
      const gone = entryOf((opened.gone ??= new Map()), indexed, () => new Set());
      for (const value of values) {
        const id = keyOf([value]);
        gone.add(id);
        const keys = name === byKey ? [id] : [...(opened.found.get(indexed.index)?.get(id) ?? [])];
        for (const key of keys) {
          const row = opened.rows.get(key)?.row;
          if (row && belongsTo(indexed.lookup, row, [value]))
            put(opened, key, { row: undefined, stored: undefined });
        }
      }
    },
    takeChanges: (tables) =>
      writesOf(
        tables.flatMap((table) => {
          const opened = loaded.get(table);
          return opened ? [takeOf(table, opened)] : [];
        }),
      ),
    readWith: (other) => {
      connection = other;
    },
    get size() {
      return [...loaded.values()].reduce((sum, { rows }) => sum + rows.size, 0);
    },
  };
  return cache;
}

interface ChangedRow {
  readonly row: AnyRow;
  readonly columns: readonly string[];
}

/** What has changed in a table and is still to be written. */
interface TakenChanges {
  readonly table: CachedTable;
  readonly deletes: readonly { readonly lookup: Lookup<object>; readonly values: readonly unknown[] }[];
  readonly gone: readonly AnyRow[];
  readonly set: readonly ChangedRow[];
  readonly changed: readonly ChangedRow[];
  readonly inserted: readonly AnyRow[];
}

/** Takes what has changed in a table. What is taken counts as stored. */
function takeOf(table: CachedTable, opened: LoadedTable): TakenChanges {
  const { rows, changed } = opened;
  const gone: AnyRow[] = [];
  const updated: ChangedRow[] = [];
  const inserted: AnyRow[] = [];
  for (const key of changed) {
    const cached = rows.get(key);
    if (!cached) continue;
    const { row, stored } = cached;
    if (row && stored) {
      const columns = Object.keys(row).filter((column) => row[column] !== stored[column]);
      if (columns.length > 0) updated.push({ row, columns });
    } else if (row) inserted.push(row);
    else if (stored) gone.push(stored);
    if (row !== stored) rows.set(key, { row, stored: row });
  }
  changed.clear();
  const deletes = [...(opened.deletes ?? [])].map(([{ lookup }, values]) => ({ lookup, values }));
  const set = [...(opened.assigned?.values() ?? [])].map((row) => ({
    row,
    columns: Object.keys(row).filter((column) => !table.key.includes(column)),
  }));
  delete opened.deletes;
  delete opened.assigned;
  return { table, deletes, gone, set, changed: updated, inserted };
}

/** What writes the changes: first deletes, then changed rows and new ones. */
function* writesOf(taken: readonly TakenChanges[]): Generator<PendingWrite> {
  for (const { table, deletes, gone } of taken.toReversed()) {
    for (const { lookup, values } of deletes) yield deleteAllWrite(table, lookup, values);
    yield* deleteWrites(table, gone);
  }
  for (const { table, set, changed, inserted } of taken) {
    for (const row of set) yield* updateWrites(table, [row]);
    yield* updateWrites(table, changed);
    yield* insertWrites(table, inserted);
  }
}

/** Values of a lookup whose rows are to be read. */
interface MissingRows {
  readonly table: CachedTable;
  readonly name: string;
  readonly lookup: Lookup<object>;
  readonly isLocked: boolean;
  readonly values: Map<string, readonly unknown[]>;
}

/** The columns whose values a lookup takes. */
const columnsOf = ({ columns, also, range }: Lookup<object>): readonly string[] => [
  ...columns,
  ...(also === undefined ? [] : [also]),
  ...(range ? [range.starts, range.ends] : []),
];

/** SQL condition: a row belongs to a lookup, whose values are SQL by their number. */
function conditionOf(lookup: Lookup<object>, valueOf: (index: number) => string): string {
  const { range, where } = lookup;
  const names = columnsOf(lookup);
  const conditions = names.map((column, index) => {
    if (range && index === names.length - 2) return `stored.${column} <= ${valueOf(index + 1)}`;
    if (range && index === names.length - 1) return `stored.${column} >= ${valueOf(index - 1)}`;
    return `stored.${column} = ${valueOf(index)}`;
  });
  return [...conditions, ...(where ? [where.sql] : [])].join(' and ');
}

/** Reads and locks the rows of lookups, in this order. `source` is the number of the lookup. */
function readsOf(sources: readonly MissingRows[]): NonNullable<PlannedFold['reads']> {
  const values: unknown[] = [];
  const words: string[] = [];
  for (const { table, name, lookup, isLocked, values: wanted } of sources) {
    words.push(table.name, name, isLocked ? 'locked' : 'read', wanted.size === 1 ? 'one' : 'many');
    if (wanted.size === 1) for (const one of wanted.values()) values.push(...one);
    else {
      const names = columnsOf(lookup);
      const rows = [...wanted.values()].map((row) =>
        Object.fromEntries(names.map((column, index) => [column, row[index]])),
      );
      values.push(JSON.stringify(rows));
    }
  }
  return {
    words,
    names: sources.map((_, source) => `wanted_${String(source)}`),
    text: (first) => selectsOf(sources, first),
    values,
  };
}

/** @param from the number of the first parameter */
function selectsOf(sources: readonly MissingRows[], from: number): string {
  let next = from;
  const selects = sources.map(({ table, lookup, isLocked, values }, source) => {
    const names = columnsOf(lookup);
    const lock = isLocked ? ' for no key update of stored' : '';
    const select = `select ${String(source)} as source, to_json(stored) as row from ${table.name} stored`;
    const first = next;
    next += values.size === 1 ? names.length : 1;
    return values.size === 1
      ? `${select} where ${conditionOf(lookup, (index) => `$${String(first + index)}`)}${lock}`
      : `${select} join json_populate_recordset(null::${table.name}, $${String(first)}) wanted
           on ${conditionOf(lookup, (index) => `wanted.${names[index] ?? ''}`)}${lock}`;
  });
  return selects.map((select, source) => `wanted_${String(source)} as (${select})`).join(', ');
}

const isKey = ({ key }: CachedTable, row: string, other: string): string =>
  key.map((column) => `${row}.${column} = ${other}.${column}`).join(' and ');

/** A value of a row as a parameter of its column. */
const parameterOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : value;

/** SQL: a column with its parameter, from this number. */
const placeFrom = (first: number) => (column: string, index: number) =>
  `${column} = $${String(first + index)}`;

function deleteAllWrite(
  table: CachedTable,
  lookup: Lookup<object>,
  values: readonly unknown[],
): PendingWrite {
  const column = lookup.columns.join();
  return {
    target: table.name,
    words: ['delete', table.name, 'of', column, lookup.where?.sql ?? ''],
    text: (first) =>
      `delete from ${table.name} stored where stored.${column} = any($${String(first)})
       ${lookup.where ? `and ${lookup.where.sql}` : ''}`,
    values: [values],
  };
}

/** A write of many rows, as JSON. */
const writeOfMany = (
  table: CachedTable,
  text: (rows: string) => string,
  rows: readonly AnyRow[],
): PendingWrite => ({
  target: table.name,
  words: undefined,
  text: (first) => text(`json_populate_recordset(null::${table.name}, $${String(first)})`),
  values: [JSON.stringify(rows)],
});

const columnsOfRow = (row: AnyRow, columns: readonly string[]): AnyRow =>
  Object.fromEntries(columns.map((column) => [column, row[column]]));

function* deleteWrites(table: CachedTable, gone: readonly AnyRow[]): Generator<PendingWrite> {
  const { name, key } = table;
  const [one, ...others] = gone;
  if (!one) return;
  if (others.length === 0)
    yield {
      target: name,
      words: ['delete', name],
      text: (first) => `delete from ${name} where ${key.map(placeFrom(first)).join(' and ')}`,
      values: valuesOf(one, key),
    };
  else
    yield writeOfMany(
      table,
      (rows) => `delete from ${name} stored using ${rows} gone where ${isKey(table, 'stored', 'gone')}`,
      gone.map((row) => columnsOfRow(row, key)),
    );
}

/** Updates of one row, which can be merged. */
const updates = new WeakMap<PendingWrite, ChangedRow & { readonly table: CachedTable }>();

function updateWrite(table: CachedTable, { row, columns }: ChangedRow): PendingWrite {
  const { name, key } = table;
  const write = {
    target: name,
    words: ['update', name, ...columns],
    text: (first: number) => `update ${name} set ${columns.map(placeFrom(first)).join(', ')}
        where ${key.map(placeFrom(first + columns.length)).join(' and ')}`,
    values: [...columns, ...key].map((column) => parameterOf(row[column])),
  };
  updates.set(write, { table, row, columns });
  return write;
}

/** One write for two updates of the same row; undefined for any others. */
export function mergeUpdates(former: PendingWrite, next: PendingWrite): PendingWrite | undefined {
  const [one, other] = [updates.get(former), updates.get(next)];
  if (!one || one.table !== other?.table) return undefined;
  const { table } = one;
  if (keyOf(valuesOf(one.row, table.key)) !== keyOf(valuesOf(other.row, table.key))) return undefined;
  return updateWrite(table, {
    row: { ...one.row, ...columnsOfRow(other.row, other.columns) },
    columns: [...new Set([...one.columns, ...other.columns])],
  });
}

/** Writes the columns that have changed in any of the rows. */
function* updateWrites(table: CachedTable, changed: readonly ChangedRow[]): Generator<PendingWrite> {
  const { name, key } = table;
  const [one, ...others] = changed;
  if (!one) return;
  if (others.length === 0) {
    yield updateWrite(table, one);
    return;
  }
  const columns = [...new Set(changed.flatMap((row) => row.columns))];
  const written = [...key, ...columns];
  for (let first = 0; first < changed.length; first += rowsPerStatement)
    yield writeOfMany(
      table,
      (rows) =>
        `update ${name} stored set ${columns.map((column) => `${column} = changed.${column}`).join(', ')}
         from ${rows} changed where ${isKey(table, 'stored', 'changed')}`,
      changed.slice(first, first + rowsPerStatement).map(({ row }) => columnsOfRow(row, written)),
    );
}

function* insertWrites(table: CachedTable, inserted: readonly AnyRow[]): Generator<PendingWrite> {
  const { name } = table;
  const [one, ...others] = inserted;
  if (!one) return;
  const columns = Object.keys(one);
  const names = columns.join(', ');
  if (others.length === 0) {
    yield {
      target: name,
      words: ['insert', name, ...columns],
      text: (first) =>
        `insert into ${name} (${names}) values (${columns.map((_, index) => `$${String(first + index)}`).join(', ')})`,
      values: columns.map((column) => parameterOf(one[column])),
    };
    return;
  }
  for (let first = 0; first < inserted.length; first += rowsPerStatement)
    yield writeOfMany(
      table,
      (rows) => `insert into ${name} (${names}) select ${names} from ${rows}`,
      inserted.slice(first, first + rowsPerStatement),
    );
}
