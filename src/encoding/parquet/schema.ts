import type { SchemaElement } from 'hyparquet';
import type { ColumnType, ExportedColumn } from '../../source/columns.ts';

/** `converted_type` is included for readers that do not know logical types. */
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

/** The schema element of a column. Every column is nullable. */
export const schemaElementOf = ({ name, type }: ExportedColumn): SchemaElement => ({
  ...elements[type],
  name,
  repetition_type: 'OPTIONAL',
});
