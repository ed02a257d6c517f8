/** The actions of which a commit of a Delta table consists, one in a line. */
import * as z from 'zod';
import { bounds } from '../config/bounds.ts';
import { countValues } from '../destination/manifest.ts';
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
  schemaString: z.string().max(bounds.tableSchema.max),
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

const shortText = z.string().max(200);

/** What a commit says of itself. exportd adds the run and its interval, or the repair; another writer adds whatever it likes. */
const commitInfo = z.object({
  timestamp: count.optional().catch(undefined),
  operation: shortText.optional().catch(undefined),
  engineInfo: shortText.optional().catch(undefined),
  run_id: shortText.optional().catch(undefined),
  repair_id: shortText.optional().catch(undefined),
  generation: count.optional().catch(undefined),
  interval: z.object({ start: shortText, end: shortText }).optional().catch(undefined),
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

/** An object of a log. */
export interface NamedBytes {
  /** For messages. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

const lineFeed = 0x0a;

/**
 * Parses the lines of a commit, one after the other.
 * @param budget how many values they may have, which all commits of a table share
 * @throws DestinationError `TableDamaged`
 */
export function* parseCommit(
  { name, bytes }: NamedBytes,
  budget = { values: bounds.tableValues.max },
): Generator<ParsedAction> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let start = 0; start < buffer.length;) {
    const end = buffer.indexOf(lineFeed, start);
    const line = buffer.toString('utf8', start, end < 0 ? buffer.length : end);
    start = end < 0 ? buffer.length : end + 1;
    budget.values -= countValues(line, budget.values);
    if (budget.values < 0) throw tableError('TableDamaged', `${name} has more values than any of exportd.`);
    if (line.trim() !== '') yield parseLine(line, name);
  }
}

function parseLine(line: string, name: string): ParsedAction {
  try {
    return parseAction(JSON.parse(line));
  } catch {
    throw tableError('TableDamaged', `${name} is not a commit of a Delta table.`);
  }
}

export const formatCommit = (actions: readonly Action[]): string =>
  `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;
