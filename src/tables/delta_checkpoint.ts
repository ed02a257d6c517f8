/** Checkpoints of a Delta table: its state as a Parquet file, so that readers need not read the log from the start. */
import { type Compressors, parquetMetadata, parquetReadObjects, type SchemaElement } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { bounds } from '../config/bounds.ts';
import { type Action, applyActions, emptyState, tableError, type TableState } from './delta_state.ts';

const optional = 'OPTIONAL';
const text = (name: string): SchemaElement => ({
  name,
  type: 'BYTE_ARRAY',
  converted_type: 'UTF8',
  logical_type: { type: 'STRING' },
  repetition_type: optional,
});
const long = (name: string): SchemaElement => ({ name, type: 'INT64', repetition_type: optional });
const integer = (name: string): SchemaElement => ({ name, type: 'INT32', repetition_type: optional });
const truth = (name: string): SchemaElement => ({ name, type: 'BOOLEAN', repetition_type: optional });
const map = (name: string): SchemaElement[] => [
  { name, repetition_type: optional, converted_type: 'MAP', logical_type: { type: 'MAP' }, num_children: 1 },
  { name: 'key_value', repetition_type: 'REPEATED', num_children: 2 },
  { ...text('key'), repetition_type: 'REQUIRED' },
  text('value'),
];
const list = (name: string): SchemaElement[] => [
  {
    name,
    repetition_type: optional,
    converted_type: 'LIST',
    logical_type: { type: 'LIST' },
    num_children: 1,
  },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  text('element'),
];
const struct = (name: string, ...fields: readonly (SchemaElement | SchemaElement[])[]): SchemaElement[] => [
  { name, repetition_type: optional, num_children: fields.length },
  ...fields.flat(),
];

const columns = [
  struct('txn', text('appId'), long('version'), long('lastUpdated')),
  struct(
    'add',
    ...[text('path'), map('partitionValues'), long('size'), long('modificationTime')],
    ...[truth('dataChange'), text('stats'), map('tags')],
  ),
  struct(
    'remove',
    ...[text('path'), long('deletionTimestamp'), truth('dataChange'), truth('extendedFileMetadata')],
    ...[map('partitionValues'), long('size')],
  ),
  struct(
    'metaData',
    ...[text('id'), text('name'), text('description')],
    struct('format', text('provider'), map('options')),
    ...[text('schemaString'), list('partitionColumns'), map('configuration'), long('createdTime')],
  ),
  struct('protocol', integer('minReaderVersion'), integer('minWriterVersion')),
] as const;

const names = ['txn', 'add', 'remove', 'metaData', 'protocol'] as const;

const mapOf = (entries: Readonly<Record<string, string | null>> | null | undefined) =>
  entries && Object.entries(entries).map(([key, value]) => ({ key, value }));
const longOf = (value: number | null | undefined): bigint | null =>
  value === null || value === undefined ? null : BigInt(Math.trunc(value));

/** Encodes a state. @param keepRemovedSince removed files from before this time, in milliseconds, are left out */
export function encodeCheckpoint(
  state: TableState,
  keepRemovedSince: number,
): { readonly bytes: Buffer; readonly actions: number } {
  const rows: Partial<Record<(typeof names)[number], unknown>>[] = [];
  const { protocol, metaData } = state;
  if (protocol) rows.push({ protocol });
  if (metaData)
    rows.push({
      metaData: {
        ...metaData,
        format: { provider: metaData.format.provider, options: mapOf(metaData.format.options) },
        configuration: mapOf(metaData.configuration),
        createdTime: longOf(metaData.createdTime),
      },
    });
  for (const txn of state.transactions.values())
    rows.push({ txn: { ...txn, version: longOf(txn.version), lastUpdated: longOf(txn.lastUpdated) } });
  for (const add of state.live.values())
    rows.push({
      add: {
        ...add,
        partitionValues: mapOf(add.partitionValues),
        size: longOf(add.size),
        modificationTime: longOf(add.modificationTime),
        // The state of the table does not change by the checkpoint.
        dataChange: false,
        tags: mapOf(add.tags),
      },
    });
  for (const remove of state.removed.values())
    if ((remove.deletionTimestamp ?? 0) >= keepRemovedSince)
      rows.push({
        remove: {
          ...remove,
          dataChange: false,
          deletionTimestamp: longOf(remove.deletionTimestamp),
          partitionValues: mapOf(remove.partitionValues),
          size: longOf(remove.size),
        },
      });
  const buffer = parquetWriteBuffer({
    columnData: names.map((name) => ({ name, data: rows.map((row) => row[name] ?? null) })),
    schema: [{ name: 'root', num_children: columns.length }, ...columns.flat()],
  });
  return { bytes: Buffer.from(buffer), actions: rows.length };
}

/** Decodes a checkpoint, also one of another writer. @throws DestinationError `TableDamaged` */
export async function decodeCheckpoint(bytes: Buffer, name: string): Promise<TableState> {
  const state = emptyState();
  try {
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    const metadata = parquetMetadata(file);
    const values = metadata.row_groups
      .flatMap((group) => group.columns)
      .reduce((sum, column) => sum + Number(column.meta_data?.num_values ?? 0), 0);
    if (!(values <= bounds.checkpointValues.max)) throw new RangeError('It has too many values.');
    const rows = await parquetReadObjects({ file, metadata, compressors: withinBudget() });
    applyActions(
      state,
      rows.map((row) => Object.fromEntries(names.map((column) => [column, plain(row[column])])) as Action),
    );
  } catch {
    throw tableError('TableDamaged', `${name} is not a checkpoint of a Delta table that exportd can read.`);
  }
  return state;
}

/** Decompressors that unpack no more than a bound: the owner of the bucket can write a checkpoint. */
function withinBudget(): Compressors {
  let unpacked = 0;
  return Object.fromEntries(
    Object.entries(compressors).map(([codec, decompress]) => [
      codec,
      (input: Uint8Array, length: number): Uint8Array => {
        unpacked += length;
        if (!(unpacked <= bounds.checkpoint.max)) throw new RangeError('It unpacks to too many bytes.');
        return decompress(input, length);
      },
    ]),
  );
}

/** Numbers instead of bigints. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}
