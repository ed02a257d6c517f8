import type { RejectedRow } from '../encoding/encoder.ts';

/** So many rows cannot be held by the file's format that leaving them out would hide a fault of the source. */
export class TooManyRejectedRows extends Error {
  override readonly name = 'TooManyRejectedRows';

  constructor(allowed: number, last: Pick<RejectedRow, 'id' | 'column' | 'reason'> | undefined) {
    const example = last ? ` The last one was ${last.id}: its column ${last.column} ${last.reason}.` : '';
    super(
      `More than ${allowed} rows of the interval cannot be exported (EXPORTD_MAX_REJECTED_ROWS).${example}`,
    );
  }
}
