import type { ColumnType } from '../columns.ts';

/** A column that an export's query chooses. */
export interface RowQueryField {
  readonly name: string;
  readonly type: ColumnType;
  /** Its expression as canonical text of the dialect. */
  readonly expression: string;
}

/**
 * What an export's owner wrote in the dialect: the columns of its files, and a further condition on its rows. It is
 * stored with a version of the config, with all that its meaning depends on, so that an interval that is exported again
 * has the same columns and values.
 */
export interface RowQuery {
  readonly dialect_query: string;
  /** Dates are those of this zone (IANA name). */
  readonly timezone: string;
  readonly week_start_day: 'sunday' | 'monday';
  readonly fields: readonly RowQueryField[];
  /** The query as canonical text. */
  readonly printed: string;
}
