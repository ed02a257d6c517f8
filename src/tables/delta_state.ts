/** What the log of a Delta table says: its actions, and the state of the table after them. */
import { bounds } from '../config/bounds.ts';
import { DestinationError } from '../destination/destination.ts';
import { hasFewValues } from '../destination/manifest.ts';
import type { ColumnType, ExportedColumn } from '../source/row_selection.ts';

/** A file that a version adds. Paths are relative to the folder of the table, and encoded as in a URL. */
export interface AddAction {
  readonly path: string;
  readonly partitionValues: Readonly<Record<string, string | null>>;
  readonly size: number;
  readonly modificationTime: number;
  readonly dataChange: boolean;
  readonly stats?: string | null;
  readonly tags?: Readonly<Record<string, string | null>> | null;
}

export interface RemoveAction {
  readonly path: string;
  readonly deletionTimestamp?: number | null;
  readonly dataChange: boolean;
  readonly extendedFileMetadata?: boolean | null;
  readonly partitionValues?: Readonly<Record<string, string | null>> | null;
  readonly size?: number | null;
}

export interface MetaDataAction {
  readonly id: string;
  readonly name?: string | null;
  readonly description?: string | null;
  readonly format: { readonly provider: string; readonly options: Readonly<Record<string, string>> };
  readonly schemaString: string;
  readonly partitionColumns: readonly string[];
  readonly configuration: Readonly<Record<string, string>>;
  readonly createdTime?: number | null;
}

export interface ProtocolAction {
  readonly minReaderVersion: number;
  readonly minWriterVersion: number;
}

export interface TransactionAction {
  readonly appId: string;
  readonly version: number;
  readonly lastUpdated?: number | null;
}

/** What a commit says of itself. exportd adds the run and its interval. */
export interface CommitInfo {
  readonly timestamp?: number;
  readonly operation?: string;
  readonly run_id?: string;
  readonly generation?: number;
  readonly interval?: { readonly start: string; readonly end: string };
}

/** A line of a commit. It has one of these, or something that this version does not know. */
export interface Action {
  readonly add?: AddAction | null;
  readonly remove?: RemoveAction | null;
  readonly metaData?: MetaDataAction | null;
  readonly protocol?: ProtocolAction | null;
  readonly txn?: TransactionAction | null;
  readonly commitInfo?: CommitInfo | null;
}

/** A table after a version. */
export interface TableState {
  protocol: ProtocolAction | null;
  metaData: MetaDataAction | null;
  /** The files of the table by decoded path. */
  readonly live: Map<string, AddAction>;
  /** Files that were removed, by decoded path. Readers of older versions need them for a while. */
  readonly removed: Map<string, RemoveAction>;
  readonly transactions: Map<string, TransactionAction>;
}

export const emptyState = (): TableState => ({
  protocol: null,
  metaData: null,
  live: new Map(),
  removed: new Map(),
  transactions: new Map(),
});

/** Applies the actions of a commit or of a checkpoint. */
export function applyActions(state: TableState, actions: Iterable<Action>): void {
  for (const { add, remove, metaData, protocol, txn } of actions) {
    if (remove) {
      const path = decodePath(remove.path);
      state.live.delete(path);
      state.removed.set(path, remove);
    }
    if (add) {
      const path = decodePath(add.path);
      state.removed.delete(path);
      state.live.set(path, add);
    }
    if (metaData) state.metaData = metaData;
    if (protocol) state.protocol = protocol;
    if (txn) state.transactions.set(txn.appId, txn);
  }
}

/** Encodes a path as in a URL. The names of partitions keep their equals signs. */
export const encodePath = (path: string): string =>
  path
    .split('/')
    .map((segment) => encodeURIComponent(segment).replaceAll('%3D', '='))
    .join('/');

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Something in the log or the files of a table keeps exportd from committing to it. It stays until a person acts. */
export const tableError = (type: string, message: string): DestinationError =>
  new DestinationError(type, message, { transient: false });

/** Parses the lines of a commit. @throws DestinationError `TableDamaged` */
export function parseCommit(text: string, name: string): Action[] {
  if (text.length > bounds.manifest.max || !hasFewValues(text))
    throw tableError('TableDamaged', `${name} is larger than any commit of exportd.`);
  try {
    return text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => JSON.parse(line) as Action);
  } catch {
    throw tableError('TableDamaged', `${name} is not a commit of a Delta table.`);
  }
}

export const formatCommit = (actions: readonly Action[]): string =>
  `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;

/** A column in the schema of a table. */
interface SchemaField {
  readonly name: string;
  readonly type: unknown;
  readonly nullable: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
}

const deltaTypes: Readonly<Record<ColumnType, string>> = {
  uuid: 'string',
  text: 'string',
  json: 'string',
  timestamp: 'timestamp',
  date: 'date',
  bigint: 'long',
  integer: 'integer',
  double: 'double',
  boolean: 'boolean',
};

/**
 * Adds columns to the schema of a table: it has all columns that its files ever had, because old files stay. An integer
 * becomes a long, in which readers also read integers.
 * @param schemaString null for a new table
 * @returns the schema; the given text if nothing changes
 * @throws DestinationError `TableColumnConflict` when a column has another type, or a name that differs in case only
 */
export function withColumns(schemaString: string | null, columns: readonly ExportedColumn[]): string {
  const fields: SchemaField[] = schemaString === null ? [] : fieldsOf(schemaString);
  let isChanged = schemaString === null;
  for (const { name, type } of columns) {
    const wanted = deltaTypes[type];
    const at = fields.findIndex((field) => field.name.toLowerCase() === name.toLowerCase());
    const found = fields[at];
    if (!found) {
      fields.push({ name, type: wanted, nullable: true, metadata: {} });
      isChanged = true;
      continue;
    }
    if (found.name !== name)
      throw tableError(
        'TableColumnConflict',
        `The table has the column ${found.name}, and the export ${name}: readers of tables do not tell them apart. Rename the column in the query, or use another prefix.`,
      );
    if (found.type === wanted || (found.type === 'long' && wanted === 'integer')) continue;
    if (found.type === 'integer' && wanted === 'long') {
      fields[at] = { ...found, type: wanted };
      isChanged = true;
      continue;
    }
    throw tableError(
      'TableColumnConflict',
      `The column ${name} of the table has the type ${typeof found.type === 'string' ? found.type : 'of a structure'}, and that of the export ${wanted}: no reader reads both. Give the column another name in the query, or use another prefix.`,
    );
  }
  return isChanged ? JSON.stringify({ type: 'struct', fields }) : (schemaString ?? '');
}

/** The columns of a schema. @throws DestinationError `TableDamaged` */
export function fieldsOf(schemaString: string): SchemaField[] {
  try {
    const { fields } = JSON.parse(schemaString) as { readonly fields: readonly SchemaField[] };
    return [...fields];
  } catch {
    throw tableError('TableDamaged', 'The schema in the log of the table is not one of a Delta table.');
  }
}
