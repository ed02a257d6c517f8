import type { SortKey } from '../domain/sort_key.ts';
import type { PropertyFilter } from '../filters/schema.ts';

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

/** A column that an export's query selects. */
interface RowQueryField {
  readonly name: string;
  readonly type: ColumnType;
  /** Its expression as canonical text of the dialect. */
  readonly expression: string;
}

/**
 * The query of an export: it selects the columns of the files and can filter rows. It is stored with a config
 * version, together with everything it depends on, so that exporting an interval again yields the same columns and
 * values.
 */
export interface RowQuery {
  readonly dialect_query: string;
  /** The time zone of dates (IANA name). */
  readonly timezone: string;
  readonly week_start_day: 'sunday' | 'monday';
  readonly fields: readonly RowQueryField[];
  /** The query as canonical text. */
  readonly printed: string;
}

/** Which rows of an interval are exported, and which columns. All conditions have to hold. */
export interface RowSelection {
  /** Event names; empty selects all. */
  readonly include_events: readonly string[];
  readonly exclude_events: readonly string[];
  /** Conditions on properties, columns or expressions, as in queries. */
  readonly filters: readonly PropertyFilter[];
  /** The export's query, which selects columns and can filter rows; without it, the model's columns are exported. */
  readonly query?: RowQuery | null;
  /** Of events: only the rows with these keys. No config has it; a run that adds late rows to a manifest does. */
  readonly only?: readonly SortKey[];
}

/** Selects all rows. */
export const allRows: RowSelection = { include_events: [], exclude_events: [], filters: [] };

/** Whether neither filters nor a query decide about a row. */
export const selectsAllRows = ({ include_events, exclude_events, filters, query }: RowSelection): boolean =>
  include_events.length === 0 && exclude_events.length === 0 && filters.length === 0 && !query;
