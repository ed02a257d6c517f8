/** How a column leaves the source in binary COPY, and so how an encoder has to read it. */
export type ColumnType =
  'uuid' | 'text' | 'timestamp' | 'date' | 'json' | 'bigint' | 'integer' | 'double' | 'boolean';

/** A column of an export, in the order of the file. */
export interface ExportedColumn {
  readonly name: string;
  readonly type: ColumnType;
  /** Read beside the others for the order of the rows; no file has it. */
  readonly hidden?: true;
}

/** The columns that files have. */
export const fileColumns = (columns: readonly ExportedColumn[]): readonly ExportedColumn[] =>
  columns.filter(({ hidden }) => hidden !== true);
