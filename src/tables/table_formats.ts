import type { TargetFields } from '../destination/config.ts';
import { formatNames, rejectField } from '../destination/config_fields.ts';
import { tableRoot } from '../destination/prefix.ts';

/** The formats of tables, as `table_format` of a config names them. */
export const tableFormats = ['delta'] as const;

/** Checks that files can be those of a table, if they have to be. @throws CommandRejected with the invalid field */
export function checkTable({ table_format, file_format, prefix }: TargetFields): void {
  if (table_format === null) return;
  if (!(tableFormats as readonly string[]).includes(table_format))
    throw rejectField(
      'table_format',
      `This table format is not supported. Supported table formats are ${formatNames(tableFormats)}.`,
    );
  if (file_format !== 'Parquet')
    throw rejectField('table_format', "The field 'table_format' requires 'file_format' to be 'Parquet'.");
  if (tableRoot(prefix, 'events') === '')
    throw rejectField(
      'prefix',
      'The first segment of the prefix of a table must have no time in it, such as events/{year}: the table is in that folder.',
    );
}
