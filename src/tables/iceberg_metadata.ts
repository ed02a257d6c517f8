/** The metadata of an Iceberg table as its catalog has it: schemas, snapshots, and what exportd says of itself in them. */
import { z } from 'zod';
import { safeText } from '../config/bounds.ts';
import { fieldIdOf } from '../encoding/parquet/file.ts';
import type { ColumnType, ExportedColumn } from '../source/row_selection.ts';
import { tableError } from './table_log.ts';

/** Ids of snapshots are 64-bit integers, and texts here. */
const snapshotId = z.union([z.number().int(), z.bigint()]).transform(String);
const count = z.number().int().min(0);

const schemaField = z.looseObject({
  id: z.number().int(),
  name: z.string(),
  required: z.boolean().default(false),
  type: z.unknown(),
});
type SchemaField = Readonly<z.infer<typeof schemaField>>;

const tableSchema = z.looseObject({ 'schema-id': count, fields: z.array(schemaField) });
type IcebergSchema = Readonly<z.infer<typeof tableSchema>>;

const snapshot = z.object({
  'snapshot-id': snapshotId,
  'parent-snapshot-id': snapshotId.nullish(),
  'sequence-number': count.default(0),
  'timestamp-ms': count,
  'manifest-list': z.string().optional(),
  summary: z
    .record(z.string(), z.string())
    .nullish()
    .transform((found) => found ?? {}),
});
export type IcebergSnapshot = Readonly<z.infer<typeof snapshot>>;

/** Iceberg's ids of partition fields begin with it. */
const firstPartitionId = 1_000;

const metadata = z.object({
  'format-version': count,
  'table-uuid': z.string(),
  'last-sequence-number': count.default(0),
  'last-column-id': count,
  'current-schema-id': count.default(0),
  schemas: z.array(tableSchema),
  'default-spec-id': count.default(0),
  'partition-specs': z.array(
    z.object({
      'spec-id': count,
      fields: z.array(
        z.looseObject({
          name: z.string(),
          'source-id': z.number().optional(),
          transform: z.string().optional(),
        }),
      ),
    }),
  ),
  'last-partition-id': count.default(firstPartitionId - 1),
  properties: z
    .record(z.string(), z.string())
    .nullish()
    .transform((found) => found ?? {}),
  'current-snapshot-id': snapshotId.nullish(),
  snapshots: z
    .array(snapshot)
    .nullish()
    .transform((found) => found ?? []),
  refs: z
    .record(z.string(), z.object({ 'snapshot-id': snapshotId }))
    .nullish()
    .transform((found) => found ?? {}),
});
export type IcebergMetadata = Readonly<z.infer<typeof metadata>>;

/** Parses what a catalog says of a table. @throws DestinationError `TableDamaged` */
export function parseMetadata(value: unknown, name: string): IcebergMetadata {
  const parsed = metadata.safeParse(value);
  if (parsed.success) return parsed.data;
  const path = safeText(parsed.error.issues[0]?.path.join('.') ?? '').slice(0, 100);
  throw tableError(
    'TableDamaged',
    `The catalog has metadata of the table ${name} that is not Iceberg's: ${path}.`,
  );
}

/** The snapshots of the table's history that the catalog still has, the newest first. */
export function historyOf({
  snapshots,
  refs,
  'current-snapshot-id': current,
}: IcebergMetadata): IcebergSnapshot[] {
  const byId = new Map(snapshots.map((found) => [found['snapshot-id'], found]));
  const history: IcebergSnapshot[] = [];
  let next = byId.get(refs.main?.['snapshot-id'] ?? current ?? '');
  while (next) {
    history.push(next);
    // Once each: another program wrote some of them.
    byId.delete(next['snapshot-id']);
    next = byId.get(next['parent-snapshot-id'] ?? '');
  }
  return history;
}

/** The fields of the partition spec of a table with these partitions: each is a column with the values of its files. */
export const specFieldsOf = (partitions: readonly ExportedColumn[]) =>
  partitions.map(({ name }, at) => ({
    ...{ 'source-id': fieldIdOf(name), 'field-id': firstPartitionId + at },
    ...{ name, transform: 'identity' },
  }));

/** The id of the spec that exportd writes files with; undefined before its first commit. */
export const specIdOf = (
  { 'partition-specs': specs }: IcebergMetadata,
  wanted: ReturnType<typeof specFieldsOf>,
): number | undefined => specs.find(({ fields }) => isSameSpec(fields, wanted))?.['spec-id'];

const isSameSpec = (
  fields: IcebergMetadata['partition-specs'][number]['fields'],
  wanted: ReturnType<typeof specFieldsOf>,
): boolean =>
  fields.length === wanted.length &&
  wanted.every(
    (field, at) =>
      fields[at]?.name === field.name &&
      fields[at]['source-id'] === field['source-id'] &&
      fields[at].transform === field.transform,
  );

/** Whether another writer has partitioned a table, or the export has other partitions now. */
export const hasOtherPartitions = (
  { 'partition-specs': specs, snapshots }: IcebergMetadata,
  wanted: ReturnType<typeof specFieldsOf>,
): boolean =>
  specs.some(({ fields }) => fields.length > 0 && !isSameSpec(fields, wanted)) ||
  (snapshots.length > 0 && !specs.some(({ fields }) => isSameSpec(fields, wanted)));

/** The schema that new rows have. @throws DestinationError `TableDamaged` */
export function currentSchema({ schemas, 'current-schema-id': id }: IcebergMetadata): IcebergSchema {
  const found = schemas.find((schema) => schema['schema-id'] === id);
  if (!found) throw tableError('TableDamaged', 'The catalog has no schema of the table with its current id.');
  return found;
}

const icebergTypes: Readonly<Record<ColumnType, string>> = {
  uuid: 'string',
  text: 'string',
  json: 'string',
  timestamp: 'timestamptz',
  date: 'date',
  bigint: 'long',
  integer: 'int',
  double: 'double',
  boolean: 'boolean',
};

/**
 * Adds columns to the fields of a table: it has all columns that its files ever had, because old files stay. An integer becomes
 * a long, in which readers also read integers.
 * @param fields none for a table without files: their ids are those of the catalog until then
 * @returns the fields; null if nothing changes
 * @throws DestinationError `TableColumnConflict` when a column has another type, or a name that differs in case only;
 *   `TableOfAnother` when it has another id than in the files of exportd
 */
export function withFields(
  fields: readonly SchemaField[],
  columns: readonly ExportedColumn[],
): readonly SchemaField[] | null {
  const all = [...fields];
  let isChanged = false;
  for (const { name, type } of columns) {
    const wanted = icebergTypes[type];
    const id = fieldIdOf(name);
    const at = all.findIndex((field) => field.name.toLowerCase() === name.toLowerCase());
    const found = all[at];
    if (found && found.name !== name)
      throw tableError(
        'TableColumnConflict',
        `The table has the column ${found.name}, and the export ${name}: readers of tables do not tell them apart. Rename the column in the query, or use another table.`,
      );
    const sameId = all.find((field) => field.id === id && field !== found);
    if (sameId)
      throw tableError(
        'TableColumnConflict',
        `The columns ${sameId.name} and ${name} have the same id in Iceberg. Rename one of them in the query.`,
      );
    if (found && found.id !== id)
      throw tableError(
        'TableOfAnother',
        `The column ${name} of the table has another id than in the files of exportd: another writer has dropped and added it. Use another table.`,
      );
    if (found?.type === wanted || (found?.type === 'long' && wanted === 'int')) continue;
    if (found && !(found.type === 'int' && wanted === 'long'))
      throw tableError(
        'TableColumnConflict',
        `The column ${name} of the table has the type ${typeof found.type === 'string' ? found.type : 'of a structure'}, and that of the export ${wanted}: no reader reads both. Give the column another name in the query, or use another table.`,
      );
    isChanged = true;
    if (found) all[at] = { ...found, type: wanted };
    else all.push({ id, name, required: false, type: wanted });
  }
  return isChanged ? all : null;
}

/** What the summary of a snapshot says of the commit of exportd that it is. */
export const marks = {
  export: 'exportd.batch-export-id',
  run: 'exportd.run-id',
  repair: 'exportd.repair-id',
  generation: 'exportd.generation',
  start: 'exportd.interval-start',
  end: 'exportd.interval-end',
  fingerprint: 'exportd.fingerprint',
} as const;

const numberIn = (summary: IcebergSnapshot['summary'], name: string): number => {
  const value = Number(summary[name] ?? 0);
  return Number.isSafeInteger(value) && value >= 0 ? value : 0;
};

/** What a snapshot is to exportd. */
export function commitOf({ summary }: IcebergSnapshot) {
  const { [marks.run]: run_id, [marks.repair]: repair_id, [marks.start]: start, [marks.end]: end } = summary;
  return {
    publication: run_id === undefined ? null : { run_id, generation: numberIn(summary, marks.generation) },
    repair_id: repair_id ?? null,
    interval: start === undefined || end === undefined ? null : { start, end },
    adds: numberIn(summary, 'added-data-files'),
    removes: numberIn(summary, 'deleted-data-files'),
  };
}

/** Files that come and go, for the summary of a snapshot. */
interface ChangedFiles {
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
}

/** The summary of a snapshot as readers and catalogs show it. @param before that of the snapshot before it */
export function summaryOf(
  before: IcebergSnapshot['summary'] | undefined,
  added: ChangedFiles,
  removed: ChangedFiles,
): Record<string, string> {
  const total = (name: string, change: number): Record<string, string> =>
    before && before[name] === undefined
      ? {}
      : { [name]: String(Math.max(0, numberIn(before ?? {}, name) + change)) };
  return {
    operation: removed.files === 0 ? 'append' : added.files === 0 ? 'delete' : 'overwrite',
    'engine-name': 'exportd',
    'added-data-files': String(added.files),
    'added-records': String(added.rows),
    'added-files-size': String(added.bytes),
    ...(removed.files > 0 && {
      'deleted-data-files': String(removed.files),
      'deleted-records': String(removed.rows),
      'removed-files-size': String(removed.bytes),
    }),
    ...total('total-data-files', added.files - removed.files),
    ...total('total-records', added.rows - removed.rows),
    ...total('total-files-size', added.bytes - removed.bytes),
    ...total('total-delete-files', 0),
    ...total('total-position-deletes', 0),
    ...total('total-equality-deletes', 0),
  };
}
