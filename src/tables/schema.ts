/** The columns of a Delta table: those of its files, and those of its partitions. */
import * as z from 'zod';
import type { PartitionColumn } from '../destination/partitions.ts';
import { hasFewValues } from '../destination/manifest.ts';
import type { ColumnType, ExportedColumn } from '../source/row_selection.ts';
import { tableError } from './table_error.ts';

/** The column of which versions have statistics: readers skip files by the insertion times of their rows. */
export const statisticsColumn = '_inserted_at';

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

const partitionTypes = { date: 'date', hour: 'integer' } as const;

/** The columns of files, and those of the partitions of their table. @throws DestinationError `TableColumnConflict` */
export function withPartitions(
  partitionColumns: readonly PartitionColumn[],
  columns: readonly ExportedColumn[],
): readonly ExportedColumn[] {
  const partitions = partitionColumns.map((name) => ({ name, type: partitionTypes[name] }));
  const taken = columns.find(({ name }) =>
    partitions.some((partition) => partition.name === name.toLowerCase()),
  );
  if (taken)
    throw tableError(
      'TableColumnConflict',
      `The export has the column ${taken.name}, which is a partition of its table: readers would find two. Rename the column in the query.`,
    );
  return [...columns, ...partitions];
}
