import type { ColumnTypes } from '../source/relations.ts';

/**
 * Columns of the relations that are read. For events, `persons` is only set if the events do not store person
 * properties.
 */
export interface SourceColumnTypes {
  readonly events?: ColumnTypes;
  readonly persons?: ColumnTypes | undefined;
}
