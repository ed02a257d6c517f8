/** What the log of a Delta table says: its actions, and the state of the table after them. */
import { z } from 'zod';
import { bounds } from '../config/bounds.ts';
import { hasFewValues } from '../destination/manifest.ts';
import type { ColumnType, ExportedColumn } from '../source/row_selection.ts';
import { tableError } from './table_log.ts';

const count = z.number();
const texts = z.record(z.string(), z.string().nullable());

/** A file that a version adds. Paths are relative to the folder of the table, and encoded as in a URL. */
const addAction = z.object({
  path: z.string(),
  partitionValues: texts.nullish().transform((values) => values ?? {}),
  size: count,
  modificationTime: count,
  dataChange: z.boolean(),
  stats: z.string().nullish(),
  tags: texts.nullish(),
});
export type AddAction = Readonly<z.infer<typeof addAction>>;

const removeAction = z.object({
  path: z.string(),
  deletionTimestamp: count.nullish(),
  dataChange: z.boolean(),
  extendedFileMetadata: z.boolean().nullish(),
  partitionValues: texts.nullish(),
  size: count.nullish(),
});
type RemoveAction = Readonly<z.infer<typeof removeAction>>;

const metaDataAction = z.object({
  id: z.string(),
  name: z.string().nullish(),
  description: z.string().nullish(),
  format: z.object({ provider: z.string(), options: z.record(z.string(), z.string()).nullish() }),
  schemaString: z.string(),
  partitionColumns: z.array(z.string()),
  configuration: z
    .record(z.string(), z.string())
    .nullish()
    .transform((values) => values ?? {}),
  createdTime: count.nullish(),
});
type MetaDataAction = Readonly<z.infer<typeof metaDataAction>>;

const transactionAction = z.object({ appId: z.string(), version: count, lastUpdated: count.nullish() });

/** What a commit says of itself. exportd adds the run and its interval, or the repair; another writer adds whatever it likes. */
const commitInfo = z.object({
  timestamp: count.optional().catch(undefined),
  operation: z.string().optional().catch(undefined),
  engineInfo: z.string().optional().catch(undefined),
  run_id: z.string().optional().catch(undefined),
  repair_id: z.string().optional().catch(undefined),
  generation: count.optional().catch(undefined),
  interval: z.object({ start: z.string(), end: z.string() }).optional().catch(undefined),
});

/** A line of a commit. It has one of these, or something that this version does not know. */
const action = z.object({
  add: addAction.nullish(),
  remove: removeAction.nullish(),
  metaData: metaDataAction.nullish(),
  protocol: z.object({ minReaderVersion: count, minWriterVersion: count }).nullish(),
  txn: transactionAction.nullish(),
  commitInfo: commitInfo.nullish(),
});
export type Action = Readonly<z.input<typeof action>>;
type ParsedAction = Readonly<z.infer<typeof action>>;

/** Checks the shape of an action, which another program may have written. @throws ZodError */
export const parseAction = (value: unknown): ParsedAction => action.parse(value);

/** A table after a version. */
export interface TableState {
  protocol: { readonly minReaderVersion: number; readonly minWriterVersion: number } | null;
  metaData: MetaDataAction | null;
  /** The files of the table by decoded path. */
  readonly live: Map<string, AddAction>;
  /** Files that were removed, by decoded path. Readers of older versions need them for a while. */
  readonly removed: Map<string, RemoveAction>;
  readonly transactions: Map<string, z.infer<typeof transactionAction>>;
}

export const emptyState = (): TableState => ({
  protocol: null,
  metaData: null,
  live: new Map(),
  removed: new Map(),
  transactions: new Map(),
});

/** Applies the actions of a commit or of a checkpoint. */
export function applyActions(state: TableState, actions: Iterable<ParsedAction>): void {
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

/** Parses the lines of a commit. @throws DestinationError `TableDamaged` */
export function parseCommit(text: string, name: string): ParsedAction[] {
  if (text.length > bounds.manifest.max || !hasFewValues(text))
    throw tableError('TableDamaged', `${name} is larger than any commit of exportd.`);
  try {
    return text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => parseAction(JSON.parse(line)));
  } catch {
    throw tableError('TableDamaged', `${name} is not a commit of a Delta table.`);
  }
}

export const formatCommit = (actions: readonly Action[]): string =>
  `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;

const schema = z.object({
  fields: z.array(
    z.object({
      name: z.string(),
      type: z.unknown(),
      nullable: z.boolean().default(true),
      metadata: z.record(z.string(), z.unknown()).default({}),
    }),
  ),
});

/** A column in the schema of a table. */
type SchemaField = Readonly<z.infer<typeof schema>['fields'][number]>;

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
    if (!hasFewValues(schemaString)) throw new RangeError('It has too many values.');
    return schema.parse(JSON.parse(schemaString)).fields;
  } catch {
    throw tableError('TableDamaged', 'The schema in the log of the table is not one of a Delta table.');
  }
}
