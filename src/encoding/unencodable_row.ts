/** A value that the file's format has no text for. No retry cures it: the row has to be put right in the source. */
export class UnencodableRow extends Error {
  override readonly name = 'UnencodableRow';
  /** The row's uuid (events) or distinct_id (persons). */
  readonly row: string;
  readonly column: string;
  /** What is wrong with the value, as the end of a sentence. */
  readonly reason: string;

  constructor(row: string, column: string, reason: string) {
    super(`The row ${row} cannot be exported: its column ${column} ${reason}.`);
    this.row = row;
    this.column = column;
    this.reason = reason;
  }
}

/** A block that is not what was said it is: a fault in exportd or in what it reads, never in a row. */
export class MalformedBlock extends Error {
  override readonly name = 'MalformedBlock';
}
