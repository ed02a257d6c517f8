import type { Connection } from '../journal/database.ts';

/** A row by column, as PostgreSQL writes it as JSON. */
export type Row = Readonly<Record<string, unknown>>;

/** Rows that a fold reads together, such as those of an interval: they have equal values in these columns. */
interface Lookup {
  readonly columns: readonly string[];
  /** Only these rows belong to it. */
  readonly where?: { readonly sql: string; readonly holds: (row: Row) => boolean };
}

/** A table whose rows a rebuild keeps in memory while it folds a batch of events. */
export interface CachedTable {
  /** Qualified with the schema. */
  readonly name: string;
  /** The columns of its primary key. A fold gives each new row all columns of the table. */
  readonly key: readonly string[];
  readonly lookups: Readonly<Record<string, Lookup>>;
}

/** Rows that a batch will need: those of a lookup, or by the key with `key`. */
export interface WantedRows {
  readonly table: CachedTable;
  readonly lookup: string;
  readonly values: readonly unknown[];
  /** Whether no such row can be stored yet, because the event creates it. */
  readonly isNew?: boolean;
}

/** Changes of rows that are still to be written. Later changes do not touch them. */
interface RowChanges {
  /** Writes them with few statements for each table. */
  write(connection: Connection): Promise<void>;
}

/** Rows of the tables of a rebuild, in memory. `takeChanges` returns what is to be written. */
export interface RowCache {
  /** Reads rows that the next events need, with one statement for each table and lookup. */
  prefetch(wanted: readonly WantedRows[]): Promise<void>;
  /** The row with this key; undefined if there is none. */
  get(table: CachedTable, ...key: readonly unknown[]): Promise<Row | undefined>;
  find(table: CachedTable, lookup: string, ...values: readonly unknown[]): Promise<readonly Row[]>;
  /** Inserts a row, or replaces the one with the same key. */
  set(table: CachedTable, row: Row): void;
  /** Changes columns of a row, also of its key. */
  change(table: CachedTable, row: Row, changes: Row): void;
  delete(table: CachedTable, row: Row): void;
  /** What has changed since it was last called, in the given order of tables. It may be written while others change. */
  takeChanges(tables: readonly CachedTable[]): RowChanges;
  /** Reads with another connection from here on. */
  readWith(connection: Connection): void;
  /** Forgets the rows of tables, after something else has changed them. */
  forget(tables: readonly CachedTable[]): void;
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

interface CachedRow {
  /** Undefined once it is deleted. */
  readonly row: Row | undefined;
  /** The row, or what it was before it was deleted. */
  readonly last: Row;
  isStored: boolean;
}

interface LoadedTable {
  readonly rows: Map<string, CachedRow>;
  readonly changed: Set<string>;
  /** By lookup and its values: the keys of rows in memory. */
  readonly found: Map<string, Map<string, Set<string>>>;
  /** By lookup: the values of which all rows are in memory. */
  readonly complete: Map<string, Set<string>>;
}

/**
 * Creates a cache over tables that nothing else writes. It reads with `reader`, which need not see what was taken from the cache
 * and is not yet committed: rows in memory are newer than stored ones.
 */
export function createRowCache(reader: Connection): RowCache {
  let connection = reader;
  const loaded = new Map<CachedTable, LoadedTable>();

  const open = (table: CachedTable): LoadedTable => {
    const known = loaded.get(table);
    if (known) return known;
    const names = Object.keys(table.lookups);
    const fresh: LoadedTable = {
      rows: new Map(),
      changed: new Set(),
      found: new Map(names.map((name) => [name, new Map<string, Set<string>>()])),
      complete: new Map([byKey, ...names].map((name) => [name, new Set<string>()])),
    };
    loaded.set(table, fresh);
    return fresh;
  };
  const lookupOf = (table: CachedTable, name: string): Lookup => {
    const lookup = name === byKey ? { columns: table.key } : table.lookups[name];
    if (!lookup) throw new RangeError(`${table.name} has no lookup "${name}".`);
    return lookup;
  };
  const valuesOf = (row: Row, columns: readonly string[]) => columns.map((column) => row[column]);
  const keyOfRow = (table: CachedTable, row: Row): string => keyOf(valuesOf(row, table.key));

  /** Puts a row into memory, in place of the one with its key. */
  const put = (table: CachedTable, last: Row, row: Row | undefined, isStored?: boolean): void => {
    const { rows, found } = open(table);
    const key = keyOfRow(table, last);
    const known = rows.get(key);
    const former = known?.row;
    for (const [name, { columns, where }] of Object.entries(table.lookups)) {
      const keys = found.get(name);
      const belongs = (some: Row | undefined): some is Row =>
        some !== undefined && (where?.holds(some) ?? true);
      const value = (some: Row | undefined) => (belongs(some) ? keyOf(valuesOf(some, columns)) : undefined);
      // Most changes are of other columns.
      if (belongs(former) && belongs(row) && columns.every((column) => former[column] === row[column]))
        continue;
      const [before, after] = [value(former), value(row)];
      if (before === after) continue;
      if (before !== undefined) keys?.get(before)?.delete(key);
      if (after === undefined) continue;
      const others = keys?.get(after);
      if (others) others.add(key);
      else keys?.set(after, new Set([key]));
    }
    rows.set(key, { row, last, isStored: isStored ?? known?.isStored ?? false });
  };
  const putChanged = (table: CachedTable, last: Row, row: Row | undefined): void => {
    put(table, last, row);
    open(table).changed.add(keyOfRow(table, last));
  };

  const load = async (table: CachedTable, name: string, wanted: ReadonlyMap<string, readonly unknown[]>) => {
    const { columns, where } = lookupOf(table, name);
    const { rows: known, complete } = open(table);
    const { rows } = await connection.query<{ row: Row }>(
      `select to_json(stored) as row from ${table.name} stored
       join json_populate_recordset(null::${table.name}, $1) wanted
         on ${columns.map((column) => `stored.${column} = wanted.${column}`).join(' and ')}
       ${where ? `where stored.${where.sql}` : ''}`,
      [
        JSON.stringify(
          [...wanted.values()].map((values) =>
            Object.fromEntries(columns.map((column, index) => [column, values[index]])),
          ),
        ),
      ],
    );
    // What is in memory may have changed since.
    for (const { row } of rows) if (!known.has(keyOfRow(table, row))) put(table, row, row, true);
    for (const values of wanted.keys()) complete.get(name)?.add(values);
  };

  const cache: RowCache = {
    prefetch: async (wanted) => {
      const missing = new Map<CachedTable, Map<string, Map<string, readonly unknown[]>>>();
      for (const { table, lookup, values, isNew } of wanted) {
        const complete = open(table).complete.get(lookup);
        const key = keyOf(values);
        if (complete?.has(key)) continue;
        if (isNew) {
          complete?.add(key);
          continue;
        }
        const ofTable = missing.get(table) ?? new Map<string, Map<string, readonly unknown[]>>();
        missing.set(table, ofTable);
        const ofLookup = ofTable.get(lookup) ?? new Map<string, readonly unknown[]>();
        ofTable.set(lookup, ofLookup.set(key, values));
      }
      for (const [table, lookups] of missing)
        for (const [lookup, values] of lookups) await load(table, lookup, values);
    },
    get: async (table, ...values) => {
      const key = keyOf(values);
      const { rows, complete } = open(table);
      if (!rows.has(key) && complete.get(byKey)?.has(key) !== true)
        await load(table, byKey, new Map([[key, values]]));
      return rows.get(key)?.row;
    },
    find: async (table, lookup, ...values) => {
      const key = keyOf(values);
      const { rows, complete, found } = open(table);
      if (complete.get(lookup)?.has(key) !== true) await load(table, lookup, new Map([[key, values]]));
      const keys = found.get(lookup)?.get(key);
      return [...(keys ?? [])].map((one) => rows.get(one)?.row).filter((row) => row !== undefined);
    },
    set: (table, row) => putChanged(table, row, row),
    change: (table, row, changes) => {
      const after = { ...row, ...changes };
      if (keyOfRow(table, after) !== keyOfRow(table, row)) putChanged(table, row, undefined);
      putChanged(table, after, after);
    },
    delete: (table, row) => putChanged(table, row, undefined),
    takeChanges: (tables) => {
      const taken = tables.map((table) => {
        const { rows, changed } = open(table);
        const changes = [...changed].flatMap((key) => rows.get(key) ?? []);
        const gone = changes.flatMap(({ row, last, isStored }) =>
          row === undefined && isStored ? [last] : [],
        );
        const written = changes.map(({ row }) => row).filter((row) => row !== undefined);
        for (const change of changes) change.isStored = change.row !== undefined;
        changed.clear();
        return { table, gone, written };
      });
      return {
        write: async (writer) => {
          for (const { table, gone, written } of taken) {
            await deleteRows(writer, table, gone);
            await writeRows(writer, table, written);
          }
        },
      };
    },
    readWith: (other) => {
      connection = other;
    },
    forget: (tables) => {
      for (const table of tables) loaded.delete(table);
    },
    get size() {
      return [...loaded.values()].reduce((sum, { rows }) => sum + rows.size, 0);
    },
  };
  return cache;
}

const isKey = ({ key }: CachedTable, row: string, other: string): string =>
  key.map((column) => `${row}.${column} = ${other}.${column}`).join(' and ');

async function deleteRows(connection: Connection, table: CachedTable, gone: readonly Row[]): Promise<void> {
  if (gone.length === 0) return;
  await connection.query(
    `delete from ${table.name} stored using json_populate_recordset(null::${table.name}, $1) gone
     where ${isKey(table, 'stored', 'gone')}`,
    [JSON.stringify(gone)],
  );
}

/** Inserts rows or replaces those with their keys, in this order: a row may need that another one has changed. */
async function writeRows(connection: Connection, table: CachedTable, rows: readonly Row[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {});
  const changes = columns.filter((column) => !table.key.includes(column));
  for (let first = 0; first < rows.length; first += rowsPerStatement)
    await connection.query(
      `insert into ${table.name} (${columns.join(', ')})
       select ${columns.join(', ')} from json_populate_recordset(null::${table.name}, $1)
       on conflict (${table.key.join(', ')}) do update set
         ${changes.map((column) => `${column} = excluded.${column}`).join(', ')}`,
      [JSON.stringify(rows.slice(first, first + rowsPerStatement))],
    );
}
