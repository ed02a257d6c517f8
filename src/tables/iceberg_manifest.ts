/** The manifests of an Iceberg table, which list its files, and the lists of manifests that its snapshots have. Format version 2. */
import { z } from 'zod';
import { bounds } from '../config/bounds.ts';
import {
  AvroError,
  type AvroField,
  type AvroSchema,
  type AvroValue,
  decodeAvro,
  encodeAvro,
} from './avro.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { specFieldsOf } from './iceberg_metadata.ts';
import { tableError } from './table_log.ts';

const long = z.union([z.number().int(), z.bigint()]);
const count = z.number().int().min(0);
const bytes = z.instanceof(Buffer);
const counts = z.array(z.object({ key: z.number().int(), value: long })).nullish();
const boundsOfColumns = z.array(z.object({ key: z.number().int(), value: bytes })).nullish();

const manifestFile = z.object({
  manifest_path: z.string(),
  manifest_length: count,
  partition_spec_id: z.number().int(),
  /** 0: files of rows, 1: deletions of rows. */
  content: z.number().int().default(0),
  sequence_number: count.default(0),
  min_sequence_number: count.default(0),
  added_snapshot_id: long,
  added_files_count: count.nullish(),
  existing_files_count: count.nullish(),
  deleted_files_count: count.nullish(),
  added_rows_count: count.nullish(),
  existing_rows_count: count.nullish(),
  deleted_rows_count: count.nullish(),
  partitions: z
    .array(
      z.object({
        contains_null: z.boolean(),
        contains_nan: z.boolean().nullish(),
        lower_bound: bytes.nullish(),
        upper_bound: bytes.nullish(),
      }),
    )
    .nullish(),
  key_metadata: bytes.nullish(),
});

/** A manifest, as the list of a snapshot has it. */
export type ManifestFile = Readonly<z.infer<typeof manifestFile>>;

const dataFile = z.object({
  content: z.number().int().default(0),
  file_path: z.string(),
  file_format: z.string(),
  partition: z.record(z.string(), z.unknown()).default({}),
  record_count: count,
  file_size_in_bytes: count,
  column_sizes: counts,
  value_counts: counts,
  null_value_counts: counts,
  nan_value_counts: counts,
  lower_bounds: boundsOfColumns,
  upper_bounds: boundsOfColumns,
  key_metadata: bytes.nullish(),
  split_offsets: z.array(long).nullish(),
  equality_ids: z.array(z.number().int()).nullish(),
  sort_order_id: z.number().int().nullish(),
});

/** What became of a file in the snapshot that wrote the manifest. */
export const entryStatus = { existing: 0, added: 1, deleted: 2 } as const;

const manifestEntry = z.object({
  status: z.number().int().min(0).max(2),
  snapshot_id: long.nullish(),
  sequence_number: count.nullish(),
  file_sequence_number: count.nullish(),
  data_file: dataFile,
});

/** A file in a manifest. What a manifest leaves to its list is filled in. */
export type ManifestEntry = Readonly<z.infer<typeof manifestEntry>>;

const field = (id: number, name: string, type: AvroSchema): AvroField => ({ name, type, 'field-id': id });
const optional = (id: number, name: string, type: AvroSchema): AvroField => ({
  ...field(id, name, ['null', type]),
  default: null,
});
const mapOf = (key: number, value: number, type: AvroSchema): AvroSchema => ({
  type: 'array',
  logicalType: 'map',
  items: {
    type: 'record',
    name: `k${key}_v${value}`,
    fields: [field(key, 'key', 'int'), field(value, 'value', type)],
  },
});
const listOf = (id: number, items: AvroSchema): AvroSchema => ({ type: 'array', items, 'element-id': id });

const listSchema: AvroSchema = {
  type: 'record',
  name: 'manifest_file',
  fields: [
    field(500, 'manifest_path', 'string'),
    field(501, 'manifest_length', 'long'),
    field(502, 'partition_spec_id', 'int'),
    field(517, 'content', 'int'),
    field(515, 'sequence_number', 'long'),
    field(516, 'min_sequence_number', 'long'),
    field(503, 'added_snapshot_id', 'long'),
    field(504, 'added_files_count', 'int'),
    field(505, 'existing_files_count', 'int'),
    field(506, 'deleted_files_count', 'int'),
    field(512, 'added_rows_count', 'long'),
    field(513, 'existing_rows_count', 'long'),
    field(514, 'deleted_rows_count', 'long'),
    optional(
      507,
      'partitions',
      listOf(508, {
        type: 'record',
        name: 'r508',
        fields: [
          field(509, 'contains_null', 'boolean'),
          optional(518, 'contains_nan', 'boolean'),
          optional(510, 'lower_bound', 'bytes'),
          optional(511, 'upper_bound', 'bytes'),
        ],
      }),
    ),
    optional(519, 'key_metadata', 'bytes'),
  ],
};

const manifestSchemaOf = (partitions: readonly ExportedColumn[]): AvroSchema => ({
  type: 'record',
  name: 'manifest_entry',
  fields: [
    field(0, 'status', 'int'),
    optional(1, 'snapshot_id', 'long'),
    optional(3, 'sequence_number', 'long'),
    optional(4, 'file_sequence_number', 'long'),
    field(2, 'data_file', {
      type: 'record',
      name: 'r2',
      fields: [
        field(134, 'content', 'int'),
        field(100, 'file_path', 'string'),
        field(101, 'file_format', 'string'),
        field(102, 'partition', {
          type: 'record',
          name: 'r102',
          fields: specFieldsOf(partitions).map(({ 'field-id': id, name }, at) =>
            optional(id, name, partitionTypes[partitions[at]?.type ?? ''] ?? 'string'),
          ),
        }),
        field(103, 'record_count', 'long'),
        field(104, 'file_size_in_bytes', 'long'),
        optional(108, 'column_sizes', mapOf(117, 118, 'long')),
        optional(109, 'value_counts', mapOf(119, 120, 'long')),
        optional(110, 'null_value_counts', mapOf(121, 122, 'long')),
        optional(137, 'nan_value_counts', mapOf(138, 139, 'long')),
        optional(125, 'lower_bounds', mapOf(126, 127, 'bytes')),
        optional(128, 'upper_bounds', mapOf(129, 130, 'bytes')),
        optional(131, 'key_metadata', 'bytes'),
        optional(132, 'split_offsets', listOf(133, 'long')),
        optional(135, 'equality_ids', listOf(136, 'int')),
        optional(140, 'sort_order_id', 'int'),
      ],
    }),
  ],
});

const partitionTypes: Readonly<Record<string, AvroSchema>> = {
  date: { type: 'int', logicalType: 'date' },
  integer: 'int',
};

/** The values of the partitions of a file, by their names: days since 1970, hours and names. */
export const partitionTuple = (
  partitions: readonly ExportedColumn[],
  values: Readonly<Record<string, string | null>>,
): Record<string, number | string | null> =>
  Object.fromEntries(
    partitions.map(({ name, type }): [string, number | string | null] => {
      const value = values[name] ?? null;
      if (value === null || type === 'text') return [name, value];
      return [name, type === 'date' ? Date.parse(value) / 86_400_000 : Number(value)];
    }),
  );

/** The least and the greatest value of a partition in a manifest, by which readers skip it. */
function partitionSummary(entries: readonly ManifestEntry[], { name }: ExportedColumn) {
  const values = entries.map(({ data_file }) => data_file.partition[name] ?? null);
  const bounds = values
    .filter((value) => typeof value === 'number' || typeof value === 'string')
    .map((value) => ({ value, bytes: boundOf(value) }))
    .toSorted((one, other) =>
      typeof one.value === 'number'
        ? one.value - Number(other.value)
        : Buffer.compare(one.bytes, other.bytes),
    );
  return {
    ...{ contains_null: values.includes(null), contains_nan: false },
    lower_bound: bounds.at(0)?.bytes ?? null,
    upper_bound: bounds.at(-1)?.bytes ?? null,
  };
}

function boundOf(value: number | string): Buffer {
  if (typeof value === 'string') return Buffer.from(value);
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

/** The names of fields by their ids: writers of older versions call some of them otherwise. */
const names = new Map<number, string>();
const collect = (schema: AvroSchema): void => {
  if (typeof schema === 'string') return;
  if (Array.isArray(schema)) {
    (schema as readonly AvroSchema[]).forEach(collect);
    return;
  }
  const {
    fields = [],
    items,
    type,
  } = schema as {
    fields?: readonly AvroField[];
    items?: AvroSchema;
    type: AvroSchema;
  };
  for (const found of fields) {
    names.set(found['field-id'] ?? -1, found.name);
    collect(found.type);
  }
  if (items !== undefined) collect(items);
  if (typeof type !== 'string') collect(type);
};
collect(listSchema);
collect(manifestSchemaOf([]));
const nameOf = ({ 'field-id': id, name }: AvroField): string => names.get(id ?? -1) ?? name;

/** What of a table's metadata may be read at a time, unpacked. It becomes less with each object. */
export interface MetadataBudget {
  bytes: number;
  values: number;
}

export const metadataBudget = (): MetadataBudget => ({
  bytes: bounds.checkpoint.max,
  values: bounds.checkpointValues.max,
});

function read<Schema extends z.ZodType>(
  schema: Schema,
  file: Buffer,
  path: string,
  budget: MetadataBudget,
): z.infer<Schema>[] {
  try {
    const { records } = decodeAvro(file, budget, nameOf);
    budget.bytes -= file.length;
    budget.values -= records.length;
    return records.map((record) => schema.parse(record));
  } catch (error) {
    if (!(error instanceof AvroError) && !(error instanceof z.ZodError)) throw error;
    throw tableError(
      'TableDamaged',
      `${path} is not what an Iceberg table has there. ${error instanceof AvroError ? error.message : ''}`.trim(),
    );
  }
}

/** Parses the list of a snapshot. @throws DestinationError `TableDamaged` */
export const readManifestList = (file: Buffer, path: string, budget: MetadataBudget): ManifestFile[] =>
  read(manifestFile, file, path, budget);

/** Parses a manifest. @throws DestinationError `TableDamaged` */
export function readManifest(file: Buffer, manifest: ManifestFile, budget: MetadataBudget): ManifestEntry[] {
  const { manifest_path, added_snapshot_id, sequence_number } = manifest;
  return read(manifestEntry, file, manifest_path, budget).map((entry) => {
    // Only what was added with the manifest leaves its numbers to the list.
    const own = entry.status === entryStatus.added ? sequence_number : 0;
    return {
      ...entry,
      snapshot_id: entry.snapshot_id ?? added_snapshot_id,
      sequence_number: entry.sequence_number ?? own,
      file_sequence_number: entry.file_sequence_number ?? own,
    };
  });
}

/** Formats the list of a snapshot. */
export const formatManifestList = (
  snapshot: { readonly id: string; readonly parent: string | null; readonly sequence: number },
  manifests: readonly ManifestFile[],
): Buffer =>
  encodeAvro(
    listSchema,
    {
      'snapshot-id': snapshot.id,
      'parent-snapshot-id': snapshot.parent ?? 'null',
      'sequence-number': String(snapshot.sequence),
      'format-version': '2',
    },
    manifests.map((manifest) => ({
      ...(manifest as unknown as Record<string, AvroValue>),
      added_files_count: manifest.added_files_count ?? 0,
      existing_files_count: manifest.existing_files_count ?? 0,
      deleted_files_count: manifest.deleted_files_count ?? 0,
      added_rows_count: manifest.added_rows_count ?? 0,
      existing_rows_count: manifest.existing_rows_count ?? 0,
      deleted_rows_count: manifest.deleted_rows_count ?? 0,
    })),
  );

/** The table that a manifest is of. */
interface ManifestTable {
  readonly schema: { readonly 'schema-id': number };
  readonly specId: number;
  readonly partitions: readonly ExportedColumn[];
}

/** Formats a manifest of files of rows. Added files get the sequence number of their snapshot from its list. */
export const formatManifest = (
  { schema, specId, partitions }: ManifestTable,
  entries: readonly ManifestEntry[],
): Buffer =>
  encodeAvro(
    manifestSchemaOf(partitions),
    {
      schema: JSON.stringify(schema),
      'schema-id': String(schema['schema-id']),
      'partition-spec': JSON.stringify(specFieldsOf(partitions)),
      'partition-spec-id': String(specId),
      'format-version': '2',
      content: 'data',
    },
    entries as unknown as AvroValue[],
  );

/** What the list of a snapshot says of a manifest that the snapshot adds. */
export function describeManifest(
  path: string,
  length: number,
  {
    specId,
    partitions,
    snapshotId,
    sequence,
  }: Pick<ManifestTable, 'specId' | 'partitions'> & { snapshotId: bigint; sequence: number },
  entries: readonly ManifestEntry[],
): ManifestFile {
  const of = (status: number) => entries.filter((entry) => entry.status === status);
  const rows = (status: number): number =>
    of(status).reduce((sum, { data_file }) => sum + data_file.record_count, 0);
  const { existing, added, deleted } = entryStatus;
  const live = entries.filter(({ status }) => status !== deleted);
  return {
    manifest_path: path,
    manifest_length: length,
    partition_spec_id: specId,
    content: 0,
    sequence_number: sequence,
    min_sequence_number: live.reduce(
      (least, { sequence_number }) => Math.min(least, sequence_number ?? sequence),
      sequence,
    ),
    added_snapshot_id: snapshotId,
    added_files_count: of(added).length,
    existing_files_count: of(existing).length,
    deleted_files_count: of(deleted).length,
    added_rows_count: rows(added),
    existing_rows_count: rows(existing),
    deleted_rows_count: rows(deleted),
    partitions: partitions.map((partition) => partitionSummary(entries, partition)),
  };
}
