/** Checkpoints of a Delta table: its state as a Parquet file, so that readers need not read the log from the start. */
import { type FileMetaData, parquetMetadata, parquetReadObjects, type SchemaElement } from 'hyparquet';
import { getSchemaPath } from 'hyparquet/src/schema.js';
import { compressors } from 'hyparquet-compressors';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { bounds, boundText } from '../config/bounds.ts';
import { checkFooter, InvalidParquet, unpackPages } from '../encoding/parquet/check_pages.ts';
import { type NamedBytes, parseAction } from './actions.ts';
import { applyActions, emptyState, type TableState } from './state.ts';
import { tableError } from './table_error.ts';

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
    text('path'),
    map('partitionValues'),
    long('size'),
    long('modificationTime'),
    truth('dataChange'),
    text('stats'),
    map('tags'),
  ),
  struct(
    'remove',
    text('path'),
    long('deletionTimestamp'),
    truth('dataChange'),
    truth('extendedFileMetadata'),
    map('partitionValues'),
    long('size'),
  ),
  struct(
    'metaData',
    text('id'),
    text('name'),
    text('description'),
    struct('format', text('provider'), map('options')),
    text('schemaString'),
    list('partitionColumns'),
    map('configuration'),
    long('createdTime'),
  ),
  struct('protocol', integer('minReaderVersion'), integer('minWriterVersion')),
] as const;

const names = ['txn', 'add', 'remove', 'metaData', 'protocol'] as const;

const mapOf = (entries: Readonly<Record<string, string | null>> | null | undefined) =>
  entries && Object.entries(entries).map(([key, value]) => ({ key, value }));
const longOf = (value: number | null | undefined): bigint | null =>
  value === null || value === undefined ? null : BigInt(Math.trunc(value));

/** Rows that are decoded at once. */
const rowsOfGroup = 5_000;

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
    rowGroupSize: rowsOfGroup,
  });
  return { bytes: Buffer.from(buffer), actions: rows.length };
}

/** Decodes a checkpoint, also one of another writer. @throws DestinationError `TableDamaged` */
export async function decodeCheckpoint({ name, bytes }: NamedBytes): Promise<TableState> {
  const state = emptyState();
  try {
    // The owner of the bucket can write a checkpoint.
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    checkFooter(footerOf(buffer));
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    const metadata = parquetMetadata(file);
    checkColumns(buffer, metadata);
    // One row group after the other: the rows of all of them take several kilobytes each.
    let rowStart = 0;
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows);
      const rows = await parquetReadObjects({ file, metadata, compressors, rowStart, rowEnd });
      rowStart = rowEnd;
      for (const row of rows)
        applyActions(state, [
          parseAction(Object.fromEntries(names.map((column) => [column, plain(row[column])]))),
        ]);
    }
  } catch (error) {
    const why = error instanceof InvalidParquet ? `: ${error.message}` : '';
    throw tableError(
      'TableDamaged',
      `${name} is not a checkpoint of a Delta table that exportd can read${why}.`,
    );
  }
  return state;
}

/** The length of the footer and the magic number. */
const tailLength = 8;

function footerOf(bytes: Buffer): Buffer {
  const length = bytes.length < tailLength ? 0 : bytes.readUInt32LE(bytes.length - tailLength);
  if (length > Math.min(bounds.parquetFooter.max, bytes.length - tailLength))
    throw new InvalidParquet('its footer is longer than the file, or than any of exportd');
  return bytes.subarray(bytes.length - tailLength - length, bytes.length - tailLength);
}

/** Checks what the columns claim, and what they unpack to. @throws InvalidParquet */
function checkColumns(bytes: Buffer, { schema, row_groups }: FileMetaData): void {
  const chunks = row_groups.flatMap(({ columns: found }) =>
    found.flatMap(({ meta_data }) => meta_data ?? []),
  );
  const rows = row_groups.reduce((sum, group) => sum + Number(group.num_rows), 0);
  const values = chunks.reduce((sum, chunk) => sum + Number(chunk.num_values), 0);
  if (!(rows <= bounds.checkpointValues.max && values <= bounds.checkpointValues.max))
    throw new InvalidParquet('it has too many values');
  let unpacked = 0;
  for (const chunk of chunks) {
    const start = Number(chunk.dictionary_page_offset ?? chunk.data_page_offset);
    const end = start + Number(chunk.total_compressed_size);
    if (!(start >= 0 && start <= end && end <= bytes.length))
      throw new InvalidParquet('a column is outside of the file');
    const path = getSchemaPath(schema, [...chunk.path_in_schema]).slice(1);
    const levels = (types: readonly string[]): number =>
      bitsOf(path.filter(({ element }) => types.includes(element.repetition_type ?? '')).length);
    const pages = unpackPages(bytes.subarray(start, end), {
      values: Number(chunk.num_values),
      codec: chunk.codec,
      levelBits: [levels(['REPEATED']), levels(['REPEATED', 'OPTIONAL'])],
    });
    for (const page of pages.values()) unpacked += page.length;
    if (unpacked > bounds.checkpoint.max)
      throw new InvalidParquet(`it unpacks to more than ${boundText(bounds.checkpoint)}`);
  }
}

const bitsOf = (level: number): number => Math.ceil(Math.log2(level + 1));

/** Numbers instead of bigints. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}
