import type { RejectedRow } from '../encoding/encoder.ts';

/** The interval has so many unrepresentable rows that leaving them out would hide an error of the source. */
export class TooManyRejectedRows extends Error {
  override readonly name = 'TooManyRejectedRows';

  constructor(max: number, last: Pick<RejectedRow, 'id' | 'column' | 'reason'> | undefined) {
    const example = last ? ` The last one was ${last.id}: its column ${last.column} ${last.reason}.` : '';
    super(
      `More than ${max} rows of the interval cannot be represented in the file format (EXPORTD_MAX_REJECTED_ROWS).${example}`,
    );
  }
}
