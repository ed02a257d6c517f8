import type { SchemaElement } from 'hyparquet';
import type { ColumnType, ExportedColumn } from '../../source/source.ts';

/** The older `converted_type` stands beside the logical type where there is one, for readers that know only that. */
const elements: Record<ColumnType, Omit<SchemaElement, 'name'>> = {
  uuid: { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } },
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  json: { type: 'BYTE_ARRAY', converted_type: 'JSON', logical_type: { type: 'JSON' } },
  timestamp: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  date: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
  bigint: { type: 'INT64' },
  integer: { type: 'INT32' },
  double: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
};

/** A column as Parquet's schema has it. Every column may hold null. */
export const schemaElementOf = ({ name, type }: ExportedColumn): SchemaElement => ({
  ...elements[type],
  name,
  repetition_type: 'OPTIONAL',
});
