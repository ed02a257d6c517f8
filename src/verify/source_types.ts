import type { ColumnTypes } from '../source/relations.ts';

/** The columns of the relations that are read; persons for events only where those do not carry their person. */
export interface SourceTypes {
  readonly events?: ColumnTypes;
  readonly persons?: ColumnTypes;
}
