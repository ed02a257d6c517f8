/** The binary COPY representation of a column, which an encoder reads. */
export type ColumnType =
  | 'uuid'
  | 'text'
  | 'timestamp'
  | 'date'
  | 'json'
  | 'bigint'
  | 'integer'
  | 'double'
  | 'boolean';

/** A column of an export. */
export interface ExportedColumn {
  readonly name: string;
  readonly type: ColumnType;
  /** Read for the order of the rows only. Files do not contain it. */
  readonly hidden?: true;
}

/** The columns that files contain. */
export const fileColumns = (columns: readonly ExportedColumn[]): readonly ExportedColumn[] =>
  columns.filter(({ hidden }) => hidden !== true);
