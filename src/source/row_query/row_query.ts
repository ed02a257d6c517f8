import type { ColumnType } from '../columns.ts';

/** A column that an export's query selects. */
export interface RowQueryField {
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
