/** The actions of which a commit of a Delta table consists, one in a line. */
import * as z from 'zod';
import { bounds } from '../config/bounds.ts';
import { hasFewValues } from '../destination/manifest.ts';
import { tableError } from './table_error.ts';

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
export type RemoveAction = Readonly<z.infer<typeof removeAction>>;

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
export type MetaDataAction = Readonly<z.infer<typeof metaDataAction>>;

const transactionAction = z.object({ appId: z.string(), version: count, lastUpdated: count.nullish() });
export type TransactionAction = Readonly<z.infer<typeof transactionAction>>;

const protocolAction = z.object({ minReaderVersion: count, minWriterVersion: count });
export type ProtocolAction = Readonly<z.infer<typeof protocolAction>>;

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
  protocol: protocolAction.nullish(),
  txn: transactionAction.nullish(),
  commitInfo: commitInfo.nullish(),
});
export type Action = Readonly<z.input<typeof action>>;
export type ParsedAction = Readonly<z.infer<typeof action>>;

/** Checks the shape of an action, which another program may have written. @throws ZodError */
export const parseAction = (value: unknown): ParsedAction => action.parse(value);

/** Encodes a path as in a URL. The names of partitions keep their equals signs. */
export const encodePath = (path: string): string =>
  path
    .split('/')
    .map((segment) => encodeURIComponent(segment).replaceAll('%3D', '='))
    .join('/');

export function decodePath(path: string): string {
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
